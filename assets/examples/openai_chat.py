"""Asks over documents with the `openai` package: whole, as a stream, with a search, and with the search as a tool.

pip install openai
python assets/examples/openai_chat.py            # a server at http://127.0.0.1:7860
FUSESCOPE_URL=http://host:7860 FUSESCOPE_KEY=... python assets/examples/openai_chat.py
"""

import json
import os
import secrets

import openai

url = os.environ.get("FUSESCOPE_URL", "http://127.0.0.1:7860").rstrip("/")
# The session names whose documents are seen: any text of 16 characters or more, kept to yourself.
session = {"X-Fusescope-Session": secrets.token_urlsafe(24)}
client = openai.OpenAI(base_url=f"{url}/v1", api_key=os.environ.get("FUSESCOPE_KEY", "none"), default_headers=session, max_retries=0)
model = client.models.list().data[0].id

passages = [
    {"title": "Tidal gate", "text": "The tidal gate of Orsund was designed by Ilka Brandt and finished in 1931."},
    {"title": "Harbour", "text": "The harbour of Orsund has three piers. The eldest ship there is the Havmaid."},
]
question = [{"role": "user", "content": "Who designed the tidal gate of Orsund?"}]

# 1. Passages in the request: their KV caches are stored, and reused whenever the same text comes again.
answer = client.chat.completions.create(
    model=model, messages=question, max_tokens=24, extra_body={"documents": passages, "fusion": {"method": "qcfuse", "ratio": 0.3}}
)
details = answer.usage.prompt_tokens_details
print("answer:", answer.choices[0].message.content)
print("prompt tokens:", answer.usage.prompt_tokens, "cached:", details.cached_tokens, "recomputed:", details.recomputed_tokens)
print("first token after", round(answer.fusescope["ttft_s"], 3), "s; cited:", [c["chunk_id"] for c in answer.fusescope["citations"]])

# 2. The same as a stream, with usage in its last part.
stream = client.chat.completions.create(
    model=model, messages=question, max_tokens=24, stream=True, stream_options={"include_usage": True}, extra_body={"documents": passages}
)
pieces = []
for part in stream:
    pieces += [choice.delta.content or "" for choice in part.choices]
    if part.usage:
        print("streamed:", "".join(pieces), "|", part.usage.completion_tokens, "tokens")

# 3. A file of your own, searched for every question.
text = "\n\n".join(passage["text"] for passage in passages).encode()
form = {"headers": {"Content-Type": "multipart/form-data"}}
document = client.post("/documents", cast_to=object, files={"file": ("orsund.txt", text, "text/plain")}, options=form)
print("uploaded:", document["id"], document["num_chunks"], "chunks")
found = client.chat.completions.create(model=model, messages=question, max_tokens=24, extra_body={"fusion": {"retrieve": 2}})
print("searched:", found.choices[0].message.content, found.fusescope["documents"])

# 4. The search as a tool. It is called because the request forces it: a small model does not choose tools by itself.
tools = [{"type": "function", "function": {"name": "search_documents", "parameters": {"type": "object"}}}]
force = {"type": "function", "function": {"name": "search_documents"}}
called = client.chat.completions.create(model=model, messages=question, tools=tools, tool_choice=force).choices[0].message
call = called.tool_calls[0]
results = client.post("/documents/search", cast_to=object, body={**json.loads(call.function.arguments), "num": 2})
messages = [*question, called, {"role": "tool", "tool_call_id": call.id, "content": json.dumps(results)}]
last = client.chat.completions.create(model=model, messages=messages, max_tokens=24, tools=tools)
print("with the tool's result:", last.choices[0].message.content)

client.delete(f"/documents/{document['id']}", cast_to=object)
print("deleted")
