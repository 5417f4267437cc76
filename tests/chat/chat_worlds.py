"""Small conversations, and the steps of a turn taken one by one so that laws can look inside."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch
from oracle import full_prefill
from worlds import tiny_runtime

from engine.chat.engine import ChatEngine, contexts_of, create_methods
from engine.chat.types import ChatMessage, ChatRequest
from engine.model.cache import RequestCache
from engine.model.primer import find_primer, primers
from engine.model.tiny import tiny_hf_model
from engine.prefix.policies import POLICIES
from engine.prefix.pool import page_bytes
from engine.runtime import Prefix
from engine.types import Chunk, FusionRequest

NOTES = (
    "The lamp of Merrow Point was lit in 1871 by Ada Quill.",
    "No ferry runs on the feast of St. Orrin.",
    "Ada Quill was born in Vell, a village of forty houses.",
)
TALK = (("Who lit the lamp?", "Ada Quill, in 1871."), ("When do ferries run?", "At seven, nine and noon."))


class ChatWorld:
    """A tiny model with its transformers twin; makes engines whose cache holds a number of blocks and whose clock is a counter."""

    def __init__(self, folder, family):
        self.runtime, self.hf = tiny_runtime(folder, family), tiny_hf_model(family)

    def behind(self, context, is_first):
        """Returns the ids of all that a stored chunk of a context was computed behind."""
        system, tokenize = self.runtime.prompts.system.ids, self.runtime.prompts.tokenize
        if context == "alone":
            return [system[:0]]
        if context == "system" or (is_first and context != "primed-one"):
            return [system]
        chosen = primers() if context == "primed-mean" else [find_primer(self.runtime.model.spec.name)]
        return [np.concatenate([system, tokenize(primer.text).ids]) for primer in chosen]

    def engine(self, capacity=64):
        spec = self.runtime.model.spec
        size = capacity * page_bytes(spec, 16, self.runtime.model.dtype)
        self.runtime.settings = replace(self.runtime.settings, prefix_bytes=size)
        ticks = itertools.count()
        return ChatEngine(self.runtime, now=lambda: float(next(ticks)))


def notes(texts=NOTES):
    return tuple(Chunk(f"c{i}", f"Note {i}", text) for i, text in enumerate(texts))


def ask(question="Where was she born?", turns=TALK, texts=NOTES, **more):
    """Returns the request of a turn behind the given ones."""
    told = [text for turn in turns for text in turn]
    messages = [ChatMessage("assistant" if i % 2 else "user", text) for i, text in enumerate([*told, question])]
    return ChatRequest(tuple(messages), notes(texts), **{"max_new_tokens": 6, "conversation": "lamp", **more})


def steps(engine, request, name, pieces=None):
    """Returns the prompt, the cache and the result of a turn's prefill by one method.

    Args:
        pieces: [start, stop) runs of the prefix that are computed one behind the other without any prefix cache; None takes the engine's.
    """
    runtime, uses = engine.runtime, []
    fitted = engine.history.fit(request, [runtime.prompts.chunk(chunk) for chunk in request.chunks])

    def fill(cache, recorder, cancelled):
        if pieces is None:
            uses.append(engine.prefixes.fill(engine._asking(request), fitted.past.typed(), cache, recorder, cancelled))
        else:
            run_pieces(runtime.decoder, fitted.past.segment.ids, pieces, cache)

    done = plain_steps(runtime, request, name, Prefix(fitted.frame, fill))
    done.use = uses[-1] if uses else None
    return done


def plain_steps(runtime, request, name, prefix=None):
    """Returns the same of a question without earlier turns, its system part from the chunk store, or behind a prefix."""
    fusion = FusionRequest(request.question, request.chunks, ratio=request.ratio, max_new_tokens=6, chunk_context=request.chunk_context)
    method = create_methods([name], fusion)[name]
    prepared = runtime.prepare(fusion, contexts=contexts_of([method], fusion), prefix=prefix)
    cache = RequestCache(runtime.model.spec, prepared.prompt.num_tokens + 16, torch.float32, torch.device("cpu"))
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    placed = prepared.placed[method.chunk_context or request.chunk_context]
    result = runtime.pipeline.prefill(method, prepared.prompt, placed, cache, fill_prefix=prepared.fill_prefix)
    return SimpleNamespace(prompt=prepared.prompt, placed=placed, cache=cache, result=result, method=method)


@torch.inference_mode()
def run_pieces(decoder, ids, pieces, cache):
    """Computes runs of a prefix by the decoder's single steps."""
    for start, stop in pieces:
        rows, hidden = decoder.rows(torch.arange(start, stop)), decoder.embed(torch.from_numpy(ids[start:stop]))
        for layer in range(decoder.spec.num_layers - 1):
            hidden = decoder.run_layer(layer, hidden, rows, cache)
        layer = decoder.spec.num_layers - 1
        decoder.write(layer, *decoder.project_kv(layer, hidden), rows, cache)


def filled(done, part):
    return getattr(done.cache, part)[:, : done.prompt.num_tokens]


def transformers_answer(hf, ids, num):
    """Returns transformers' greedy answer to token ids, the end token left out."""
    with torch.no_grad():
        out = hf.generate(torch.from_numpy(np.asarray(ids, np.int64))[None], max_new_tokens=num, do_sample=False, pad_token_id=259)
    answer = out[0, len(ids) :].tolist()
    return answer[: answer.index(258)] if 258 in answer else answer


def assert_pages_are_exact(engine, hf):
    """Asserts that every page holds what transformers computes for the tokens that lead to it; returns how many there are."""
    server = engine.prefixes.server
    names, pages = server._names._name, server.pages
    rows = np.flatnonzero(server.columns.cached).tolist()
    leaves = [row for row in rows if not server.columns.num_children[row]]
    for leaf in leaves:
        path = [leaf]
        while (parent := int(server.columns.parent[path[0]])) >= 0:
            path.insert(0, parent)
        ids = np.concatenate([np.frombuffer(names[row][1], np.int64) for row in path])
        cache = RequestCache(engine.runtime.model.spec, len(path) * 16, torch.float32, torch.device("cpu"))
        server.pool.load(pages.pages(np.array(path)), cache)
        expected = full_prefill(hf, ids)
        torch.testing.assert_close(cache.keys[:, : len(ids)], expected.keys, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(cache.values[:, : len(ids)], expected.values, rtol=1e-4, atol=1e-4)
    return len(rows)


def live_policies():
    """Returns the names of the policies that can run without knowing the future."""
    return [name for name in POLICIES.names() if not POLICIES.create(name).needs_future]
