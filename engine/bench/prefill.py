"""Our full prefill and decode against transformers' own, same weights, in one run: A B A B.

What is timed: a prompt of exactly n tokens to the logits of its last token, KV kept; then greedy decoding, ours
behind a QCFuse-fused cache, transformers' `generate` behind its own prefill.
"""

import argparse
import itertools
import time

import numpy as np
import torch

from engine.bench.report import print_json, print_table, spread
from engine.chunks.prefetch import Placed
from engine.errors import BadRequest
from engine.fusion import METHODS
from engine.fusion.decode import decode
from engine.model.prompt import Prompt
from engine.provenance import provenance
from engine.runtime import Runtime, load_runtime
from engine.scenarios import load_scenarios
from engine.settings import Settings

CHUNK_TOKENS = 192


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench prefill", description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", default="512,1024,2048", help="prompt lengths, comma-separated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--decode-tokens", type=int, default=32)
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    args = parser.parse_args(argv)
    try:
        lengths = [int(part) for part in args.tokens.split(",")]
    except ValueError:
        raise BadRequest(f"--tokens is {args.tokens!r}; give whole numbers separated by commas.") from None
    settings = Settings.from_env()
    runtime = load_runtime(settings.model, settings)
    reference = _transformers_model(runtime, settings)
    rows = [_measure(runtime, reference, n, args.repeats, args.decode_tokens) for n in lengths]
    if not args.json:
        print_table(
            ("tokens", "ours s", "transformers s", "ratio", "max |diff|", "ours tok/s", "transformers tok/s"),
            [
                (
                    r["tokens"],
                    f"{r['ours_s']['median']:.3f}",
                    f"{r['transformers_s']['median']:.3f}",
                    f"{r['ratio']:.3f}",
                    f"{r['max_abs_diff']:.1e}",
                    f"{r['ours_decode_tok_s']:.1f}",
                    f"{r['transformers_decode_tok_s']:.1f}",
                )
                for r in rows
            ],
        )
    import msgspec

    print_json({"bench": "prefill", "rows": rows, "repeats": args.repeats, "provenance": msgspec.to_builtins(provenance(runtime))})


def _transformers_model(runtime: Runtime, settings: Settings) -> object:
    """Returns transformers' own model of the same weights."""
    from transformers import AutoModelForCausalLM

    from engine.model.bundled import bundled_folder

    source = bundled_folder(settings) if settings.model == "bundled" else settings.model
    model = AutoModelForCausalLM.from_pretrained(source, dtype=runtime.model.dtype, attn_implementation="sdpa")
    return model.to(runtime.model.device).eval()


def _prompt(runtime: Runtime, num_tokens: int) -> Prompt:
    """Returns a prompt of exactly `num_tokens`, its documents cut from the bundled scenarios' text."""
    spec, builder = runtime.model.spec, runtime.prompts
    bare = builder.build([], "Which of these is the oldest, and who says so?", 1)
    least, most = bare.num_tokens + 64, spec.max_context - 64
    if not least <= num_tokens <= most:
        raise BadRequest(f"--tokens has {num_tokens}; this model's prompts must have {least} to {most}.")
    room = num_tokens - bare.num_tokens
    text = "\n\n".join(chunk.text for scenario in load_scenarios().values() for chunk in scenario.chunks())
    while len(stream := builder.tokenize(text).ids) < room:
        text += text
    cuts = [*list(range(0, room, CHUNK_TOKENS)), room]
    start, stop = bare.question_span
    return Prompt(
        ids=np.concatenate([bare.ids[: bare.system_len], stream[:room], bare.ids[bare.system_len :]]),
        pieces=(),
        system_len=bare.system_len,
        chunk_spans=tuple((bare.system_len + a, bare.system_len + b) for a, b in itertools.pairwise(cuts)),
        question_start=bare.system_len + room,
        question_span=(start + room, stop + room),
    )


def _measure(runtime: Runtime, reference: object, num_tokens: int, repeats: int, decode_tokens: int) -> dict[str, object]:
    prompt = _prompt(runtime, num_tokens)
    ids = torch.from_numpy(prompt.ids)[None].to(runtime.model.device)
    cache = runtime.pool.get("full", num_tokens + decode_tokens + 1)
    full = METHODS.create("full")
    ours, theirs, difference = [], [], 0.0
    with torch.inference_mode():
        for i in range(repeats + 1):
            filled = runtime.pipeline.prefill(full, prompt, (), cache)
            begun = time.perf_counter()
            logits = reference(input_ids=ids, use_cache=True, logits_to_keep=1).logits[0, -1]
            int(logits.argmax())
            elapsed = time.perf_counter() - begun
            difference = max(difference, float((filled.logits - logits.float()).abs().max()))
            if i:
                # The first round warms both up and is not counted.
                ours.append(filled.ttft_s)
                theirs.append(elapsed)
    our_rate, their_rate = _decode_rates(runtime, reference, prompt, ids, decode_tokens)
    times = spread(ours), spread(theirs)
    return {
        "tokens": num_tokens,
        "ours_s": times[0],
        "transformers_s": times[1],
        "ratio": times[0]["median"] / times[1]["median"],
        "max_abs_diff": difference,
        "ours_decode_tok_s": our_rate,
        "transformers_decode_tok_s": their_rate,
    }


def _decode_rates(runtime: Runtime, reference: object, prompt: Prompt, ids: torch.Tensor, num: int) -> tuple[float, float]:
    """Returns decoded tokens a second behind the first, ours and transformers', medians of three, in turn."""
    source, spans = runtime.source, ((0, prompt.system_len), *prompt.chunk_spans)
    placed = []
    for i, (start, stop) in enumerate(spans):
        part = torch.from_numpy(prompt.ids[start:stop])
        with torch.inference_mode():
            stored = source.system() if i == 0 else source.get(part, "system") or source.compute(part, "system")
        placed.append(Placed(stored, start, stop))
    cache, method, rates = runtime.pool.get("method", prompt.num_tokens + num + 1), METHODS.create("qcfuse"), ([], [])
    for _ in range(3):
        fused = runtime.pipeline.prefill(method, prompt, placed, cache)
        # An answer that ends early would leave nothing to time, so the end token is a token like any other here.
        decoded = decode(runtime.decoder, fused.logits, prompt.num_tokens, cache, num, end_ids=())
        rates[0].append((num - 1) / float(decoded.times_s[-1] - decoded.times_s[0]))
        clock = _Clock()
        with torch.inference_mode():
            reference.generate(ids, max_new_tokens=num, min_new_tokens=num, do_sample=False, streamer=clock)
        rates[1].append((num - 1) / (clock.times[-1] - clock.times[0]))
    return float(np.median(rates[0])), float(np.median(rates[1]))


class _Clock:
    """A streamer that keeps the time of every generated token and forgets the prompt."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        if self._prompt_seen:
            self.times.append(time.perf_counter())
        self._prompt_seen = True

    def end(self) -> None:
        return None
