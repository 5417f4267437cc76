"""The same tiny model twice: in an SGLang server with the plugin, and in the built-in engine beside it, on one chunk store."""

import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from servers import Server

from engine.chunks.prefetch import Placed
from engine.compare import create_methods
from engine.model.cache import RequestCache
from engine.model.loader import load_model
from engine.runtime import Runtime
from engine.serving.sglang.metadata import FIELD, FusionMeta, RequestMeta, write_meta
from engine.settings import Settings
from engine.types import Chunk, FusionRequest

TEXTS = (
    "The lamp of Merrow Point was lit in 1871 by Ada Quill.",
    "Ferry times: 7, 9 and 12. No ferry runs on the feast of St. Orrin.",
    "Ada Quill was born in Vell, a village of forty houses.",
    "The museum closes at five.",
)
ORDERS = ((0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0))
TOP, ALONE = 20, "alone"


def lighthouse(order=ORDERS[0], ratio=0.2, question="Where was the lamp lighter born?") -> FusionRequest:
    """Returns a request over four notes in an order."""
    chunks = tuple(Chunk(f"c{i}", f"Note {i}", TEXTS[i]) for i in order)
    return FusionRequest(question, chunks, ratio=ratio)


class FusionWorld:
    """One server and one built-in runtime; `ask` and `built_in` answer the same request by the same method."""

    def __init__(self, model: Path, folder: Path, *arguments: str) -> None:
        sizes = ("--max-total-tokens", "16384", "--max-running-requests", "8", "--chunked-prefill-size", "-1")
        self.server = Server(model, folder / "server.log", "--attention-backend", "qcfuse", *sizes, *arguments, cache=folder)
        settings = Settings(cache_dir=folder, num_threads=1)
        self.runtime = Runtime(load_model(str(model), settings), settings)

    def prompt(self, request):
        return self.runtime.prepare(request).prompt

    def custom(self, request, method="qcfuse", keep=False, **params):
        """Returns the custom parameters that ask for a request's fusion."""
        prompt, params = self.prompt(request), {"ratio": request.ratio, **params} if method != "reuse" else params
        fusion = FusionMeta(prompt.chunk_spans, prompt.question_span, method, params, request.chunk_context, keep)
        return write_meta(RequestMeta(fusion=fusion))

    def custom_of(self, prompt, ratio):
        """Returns the custom parameters that ask for a prompt's fusion."""
        return write_meta(RequestMeta(fusion=FusionMeta(prompt.chunk_spans, prompt.question_span, params={"ratio": ratio})))

    def behind(self, request, text):
        """Returns a request's prompt with another text in the place of the system part, and that text's ids."""
        prompt, before = self.prompt(request), self.runtime.prompts.tokenize(text).ids
        shift = len(before) - prompt.system_len
        moved = replace(
            prompt,
            ids=np.concatenate([before, prompt.ids[prompt.system_len :]]),
            system_len=len(before),
            chunk_spans=tuple((start + shift, stop + shift) for start, stop in prompt.chunk_spans),
            question_start=prompt.question_start + shift,
            question_span=tuple(edge + shift for edge in prompt.question_span),
        )
        return moved, before.tolist()

    def built_in_behind(self, prompt, request):
        """Returns what the built-in engine does with a prompt whose part before the chunks is computed exactly."""
        decoder, spec = self.runtime.decoder, self.runtime.model.spec
        stored = self.runtime.prepare(request).placed["system"][1:]
        spans = zip(stored, prompt.chunk_spans, strict=True)
        placed = [Placed(None, 0, prompt.system_len, True), *(Placed(part.chunk, *span) for part, span in spans)]

        def fill(cache, recorder, cancelled):
            rows, hidden = decoder.rows(torch.arange(prompt.system_len)), decoder.embed(torch.from_numpy(prompt.ids[: prompt.system_len]))
            for layer in range(spec.num_layers):
                hidden = decoder.run_layer(layer, hidden, rows, cache)

        cache = RequestCache(spec, prompt.num_tokens + 8, torch.float32, torch.device("cpu"))
        done = self.runtime.pipeline.prefill(create_methods(["qcfuse"], request)["qcfuse"], prompt, placed, cache, fill_prefix=fill)
        return SimpleNamespace(rows=done.plan.rows, log_probs=torch.log_softmax(done.logits, -1).numpy())

    def ask(self, request, method="qcfuse", max_new_tokens=1, salt=ALONE, **params):
        """Returns what the server did with a request, which finds nothing of earlier ones unless `salt` is None or theirs."""
        custom = None if method == "full" else self.custom(request, method, **params)
        return self.answer(self.prompt(request).ids.tolist(), custom, max_new_tokens, salt)

    def answer(self, ids, custom, max_new_tokens=1, salt=ALONE):
        """Returns what the server did with a prompt of ids."""
        name = f"alone {uuid.uuid4().hex}" if salt == ALONE else salt
        more = {"cache_salt": name} if name else {}
        return told(self.server.generate(ids, max_new_tokens, custom, return_logprob=True, top_logprobs_num=TOP, **more))

    def built_in(self, request, method="qcfuse", **params):
        """Returns the built-in engine's plan and the log-probabilities of its first token, float32 [vocabulary]."""
        made = create_methods([method], request)[method]
        if params:
            made = type(made)(**{**made.params(), **params})
        prepared = self.runtime.prepare(request)
        cache = RequestCache(self.runtime.model.spec, prepared.prompt.num_tokens + 8, torch.float32, torch.device("cpu"))
        context = made.chunk_context or request.chunk_context
        done = self.runtime.pipeline.prefill(made, prepared.prompt, prepared.placed[context], cache)
        return SimpleNamespace(rows=done.plan.rows, log_probs=torch.log_softmax(done.logits, -1).numpy(), layers=done.plan.critical_layers)


def told(answer):
    """Returns an answer's ids, its first token's best log-probabilities by id, cached tokens, and what the plugin says of it."""
    meta = answer["meta_info"]
    top = {token: log_prob for log_prob, token, _ in meta["output_top_logprobs"][0]}
    info = (meta.get(FIELD) or [{}])[0]
    return SimpleNamespace(ids=answer["output_ids"], top=top, cached=meta["cached_tokens"], info=info)


def assert_same_logits(top, log_probs):
    """The best tokens' log-probabilities agree within 1e-4 with those of the built-in engine, float32 [vocabulary]."""
    ids = np.array(sorted(top))
    np.testing.assert_allclose([top[i] for i in ids.tolist()], log_probs[ids], atol=1e-4, rtol=0)
    assert set(top) == set(np.argsort(-log_probs, kind="stable")[: len(top)].tolist())
