#!/bin/sh
# The API with curl alone: `sh assets/examples/curl.sh`, a server at http://127.0.0.1:7860 or at $FUSESCOPE_URL.
set -eu
url="${FUSESCOPE_URL:-http://127.0.0.1:7860}"
key="Authorization: Bearer ${FUSESCOPE_KEY:-none}"
# Names whose documents are seen: any text of 16 characters or more, kept to yourself.
session="X-Fusescope-Session: $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"

curl -sS "$url/healthz"
echo
curl -sS -H "$key" "$url/v1/models"
echo

# Passages in the request.
curl -sS -H "$key" -H 'Content-Type: application/json' "$url/v1/chat/completions" -d '{
  "model": "fusescope",
  "messages": [{"role": "user", "content": "Who designed the tidal gate?"}],
  "max_tokens": 24,
  "documents": [{"title": "Tidal gate", "text": "The tidal gate of Orsund was designed by Ilka Brandt."}],
  "fusion": {"method": "qcfuse", "ratio": 0.3}
}'
echo

# A file of your own, then a stream over what a search finds in it.
printf 'The tidal gate of Orsund was designed by Ilka Brandt.\n' | curl -sS -H "$key" -H "$session" -F 'file=@-;filename=orsund.txt' "$url/v1/documents"
echo
curl -sSN -H "$key" -H "$session" -H 'Content-Type: application/json' "$url/v1/chat/completions" -d '{
  "model": "fusescope",
  "messages": [{"role": "user", "content": "Who designed the tidal gate?"}],
  "max_tokens": 24, "stream": true, "stream_options": {"include_usage": true},
  "fusion": {"retrieve": 2}
}'
curl -sS -X DELETE -H "$key" -H "$session" "$url/v1/documents"
echo
