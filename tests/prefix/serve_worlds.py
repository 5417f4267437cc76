"""Small servers for tests, and prefills that know of no cache to compare them with."""

import itertools
from types import SimpleNamespace

import numpy as np
import torch

from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.model.prompt import PromptBuilder
from engine.model.tiny import tiny_model
from engine.prefix.blocks import TokenType
from engine.prefix.policies import POLICIES
from engine.prefix.roles import ChatFormat, typed
from engine.prefix.serve import PrefixServer
from engine.prefix.serve_types import ServeRequest
from kernels.ops import load_ops

CPU = torch.device("cpu")


SYSTEM, USER, TOOL, RESPONSE, COT = TokenType


def make_world(family):
    model = tiny_model(family)
    builder = PromptBuilder(model.tokenizer, model.spec.max_context)
    chat = ChatFormat(model.tokenizer, lambda text, special: builder.tokenize(text, special).ids)
    decoder = Decoder(model, load_ops("torch"))
    return SimpleNamespace(decoder=decoder, chat=chat, text=lambda i: model.tokenizer.decode([i]))


def server_of(world, capacity=64, policy="lru", **more):
    return PrefixServer(world.decoder, POLICIES.create(policy), capacity, **more)


def tokens(num, seed=0, kind=USER):
    return typed(np.random.default_rng(seed).integers(32, 127, num), kind)


def ask(prompt, time_s=0.0, session=0, **more):
    return ServeRequest(prompt, time_s, session, **more)


def serve(server, request, answer=None):
    """Returns what became of a request, ended."""
    with server.prefill(request) as running:
        if answer is not None:
            server.write_answer(running, answer)
        served = server.finish(running)
    server.check_integrity()
    return served


@torch.inference_mode()
def run_rows(decoder, ids, start, cache):
    """Computes rows by the decoder's single steps, as a fresh prefill does; returns the logits of the last."""
    rows, hidden = decoder.rows(torch.arange(start, start + len(ids))), decoder.embed(torch.from_numpy(ids))
    for layer in range(decoder.spec.num_layers - 1):
        hidden = decoder.run_layer(layer, hidden, rows, cache)
    layer, last = decoder.spec.num_layers - 1, decoder.rows(torch.tensor([start + len(ids) - 1]))
    decoder.write(layer, *decoder.project_kv(layer, hidden), rows, cache)
    hidden = decoder.attend(layer, hidden[-1:], decoder.project_query(layer, hidden[-1:]), last, cache)
    return decoder.logits(hidden)[0]


def fresh_cache(decoder):
    cache = RequestCache(decoder.spec, 1024, torch.float32, CPU)
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    return cache


def fresh_prefill(decoder, ids, cuts=()):
    """Returns logits and cache of a prefill without any cache before it, split at positions."""
    cache = fresh_cache(decoder)
    for start, stop in itertools.pairwise([0, *cuts, len(ids)]):
        logits = run_rows(decoder, ids[start:stop], start, cache)
    return logits, cache
