#!/usr/bin/env bash
# Starts an SGLang server with the plugin and the app that talks to it, on one model; ends when either of them does.
# Arguments go to SGLang. The server is reached from inside alone; visitors see the app.
set -euo pipefail
cd "$(dirname "$0")/.."
model=${FUSESCOPE_MODEL:-Qwen/Qwen3-0.6B}
port=${SGLANG_PORT:-30000}
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# Both processes compute on one GPU: SGLang leaves half of its memory to the app.
python3 -m engine.serving.sglang.launch --model-path "$model" --host 127.0.0.1 --port "$port" \
    --radix-eviction-policy saecache --page-size 16 --attention-backend qcfuse \
    --chunked-prefill-size -1 --cuda-graph-backend-prefill disabled --mem-fraction-static 0.5 "$@" &

FUSESCOPE_MODEL=$model FUSESCOPE_SGLANG_URL=http://127.0.0.1:$port .venv/bin/python app.py &

wait -n
