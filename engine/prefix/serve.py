"""Serves requests on one model through a prefix cache: matched blocks are read from pages, the rest is computed and inserted.

A request has two ends. `prefill` finds the longest cached prefix, pins it while the request runs, copies its pages to the
request's own cache and computes the rest up to the first token; that is its TTFT. `finish` visits the tree once, as policies
count one look-up and one touch a request: it makes room, inserts prompt and answer and writes their pages. Who gives up, by error
or by `close`, has changed nothing but a pin, which is taken off. One prefill at a time; several requests may be between the two.
`hold` is a prefill for who computes the first token himself, behind what the cache does not know of.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.errors import BadRequest
from engine.fusion.decode import decode
from engine.model.cache import CachePool, RequestCache
from engine.model.decoder import Decoder
from engine.prefix.blocks import BlockColumns
from engine.prefix.names import BlockNames
from engine.prefix.pages import PageTable
from engine.prefix.policy import EvictionPolicy
from engine.prefix.pool import PagePool
from engine.prefix.request import UNKNOWN, CacheRequest
from engine.prefix.roles import TypedTokens, typed_answer
from engine.prefix.serve_prefill import compute_rows, first_logits
from engine.prefix.serve_types import Occupancy, Prefilled, Running, Served, ServeRequest
from engine.prefix.tree import PrefixTree
from engine.recorder import Recorder

BLOCK_TOKENS, NUM_QUEUES, NUM_KINDS = 16, 4, 5


class PrefixServer:
    """One model behind one prefix cache.

    Args:
        capacity: of the cache in blocks; its memory is taken at once and never grows.
        max_running: requests that may be between prefill and end at a time; each has a cache of its own besides.
        num_rows: blocks that can be named at once; without it as many as cached and remembered blocks and two prompts need.
        caches: of running requests, where several servers take turns on the same memory.
        predict: the probability that a session goes on from a prompt's last hidden state [1, hidden], for requests without one.
    """

    def __init__(
        self,
        decoder: Decoder,
        policy: EvictionPolicy,
        capacity: int,
        block_tokens: int = BLOCK_TOKENS,
        max_running: int = 1,
        num_rows: int | None = None,
        caches: CachePool | None = None,
        predict: Callable[[Tensor], float] | None = None,
    ) -> None:
        spec = decoder.spec
        self.decoder, self.policy, self.block_tokens, self._predict = decoder, policy, block_tokens, predict
        self.pool = PagePool(spec, capacity, block_tokens, decoder.dtype, decoder.device)
        rows = num_rows or capacity + int(policy.ghost_ratio * capacity) + 2 * -(-spec.max_context // block_tokens)
        self.columns = BlockColumns.empty(rows, block_tokens)
        self.tree = PrefixTree(self.columns, capacity, policy)
        self.pages = PageTable(capacity, rows)
        self._names = BlockNames(self.columns)
        self._caches = caches or CachePool(spec, decoder.dtype, decoder.device)
        self._free_slots = list(range(max_running))[::-1]
        self._max_running, self._num_finished, self._now_s = max_running, 0, -np.inf

    @property
    def num_running(self) -> int:
        """Returns the number of requests between prefill and end."""
        return self._max_running - len(self._free_slots)

    def occupancy(self) -> Occupancy:
        """Returns what the cache holds now."""
        c = self.columns
        queues, kinds = np.bincount(c.queue[c.cached], minlength=NUM_QUEUES), np.bincount(c.kind[c.cached], minlength=NUM_KINDS)
        return Occupancy(queues, kinds, self.tree.capacity - self.tree.size)

    def prefill(self, request: ServeRequest, answer_room: int = 64, cancelled: Callable[[], bool] = lambda: False) -> Running:
        """Returns the request with its first token; to be ended by `finish` or `close`. Raises BadRequest, Cancelled.

        Args:
            answer_room: tokens that may follow the prompt.
        """
        recorder = Recorder(self.decoder.device)
        running = self._open(request, answer_room)
        try:
            running.filled = self._fill(running, recorder, cancelled)
        finally:
            if running.filled is None:
                self.close(running)
        return running

    def hold(
        self,
        request: ServeRequest,
        cache: RequestCache,
        recorder: Recorder,
        behind: TypedTokens | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Running:
        """Returns a request whose prompt, and what is known `behind` it, is in a cache of the caller's, found or computed.

        It asks for no token, so its prompt may be empty: policies then take `behind` as a touch without a look-up, as with an answer.
        Its last block may hold fewer tokens than the others; whoever goes on with the same tokens finds that, too.
        It takes no slot, and is to be ended by `finish` or `close`. Raises Cancelled.

        Args:
            cache: with room for whole blocks; nothing behind the request's tokens in it is kept.
        """
        running = Running(request, None, cache, self.close)
        running.has_rest = True
        running.answer = request.prompt[:0] if behind is None else behind
        try:
            whole = request.prompt + running.answer
            num_reused = min(self._load(running, whole, recorder), len(whole))
            hidden = torch.empty(0, self.decoder.spec.hidden_size)
            if num_reused < len(whole):
                rest = torch.from_numpy(whole.ids[num_reused:])
                hidden = compute_rows(self.decoder, rest, num_reused, cache, recorder, cancelled)
            unused = slice(len(whole), self._num_blocks(whole, has_rest=True) * self.block_tokens)
            cache.keys[:, unused], cache.values[:, unused] = 0, 0
            running.filled = Prefilled(hidden.new_empty(0), hidden, num_reused, recorder.now(), recorder.spans())
        finally:
            if running.filled is None:
                self.close(running)
        return running

    def generate(
        self, running: Running, max_new_tokens: int, text: Callable[[int], str], cancelled: Callable[[], bool] = lambda: False
    ) -> np.ndarray:
        """Returns the greedy answer's ids int32 [n], which become the request's answer, typed. Raises BadRequest, Cancelled.

        Args:
            text: of one token, special tokens written out.
        """
        self._check_room(running, max_new_tokens)
        start = len(running.request.prompt)
        ids = decode(self.decoder, running.first.logits, start, running.cache, max_new_tokens, cancelled=cancelled).ids
        # The last token of an answer that was cut off has not been through the layers.
        done = ids[: max(max_new_tokens - 1, 0)].tolist()
        running.answer = typed_answer(done, [text(token_id) for token_id in done])
        return ids

    def write_answer(self, running: Running, answer: TypedTokens) -> None:
        """Puts a known answer behind the prompt, computed as one batch. Raises BadRequest where it has no room."""
        self._check_room(running, len(answer))
        if len(answer):
            start = len(running.request.prompt)
            compute_rows(self.decoder, torch.from_numpy(answer.ids), start, running.cache, Recorder(self.decoder.device))
            running.answer = answer

    def finish(self, running: Running) -> Served:
        """Inserts the request's blocks, evicting for them, and closes it. Raises BadRequest where its blocks cannot be named."""
        assert running.is_open, "a request is finished once"
        begun = time.perf_counter()
        try:
            served = self._insert(running)
        finally:
            self.close(running)
        return served._replace(insert_s=time.perf_counter() - begun)

    def close(self, running: Running) -> None:
        """Lets go of a request's blocks and cache; what it has not finished is not kept. Safe to call twice."""
        if not running.is_open:
            return
        running.is_open = False
        if running.slot is not None:
            self._free_slots.append(running.slot)
        if len(running.pinned):
            self.tree.unpin(running.pinned)

    def check_integrity(self) -> None:
        """Asserts what must hold between two calls; O(number of rows)."""
        self.tree.check_integrity()
        self.pages.check_integrity(self.columns.cached)
        assert not self.columns.num_refs.any(), "only `finish` holds references, and lets go of them"

    def _open(self, request: ServeRequest, answer_room: int) -> Running:
        """Returns a request with a slot and a cache. Raises BadRequest."""
        num_tokens, most = len(request.prompt), self.decoder.spec.max_context
        if not num_tokens:
            raise BadRequest("The prompt is empty; write some text.")
        if num_tokens + answer_room > most:
            raise BadRequest(
                f"The prompt has {num_tokens:,} tokens and the answer may take {answer_room}; the model reads at most {most:,}, "
                "so shorten the conversation."
            )
        if not self._free_slots:
            raise BadRequest(f"{self._max_running} requests are running, as many as may; wait until one has ended.")
        slot = self._free_slots[-1]
        cache = self._caches.get(f"prefix {slot}", num_tokens + answer_room)
        return Running(request, self._free_slots.pop(), cache, self.close)

    def _check_room(self, running: Running, num_tokens: int) -> None:
        assert running.is_open, "a request that has ended gets no answer"
        room = min(running.cache.capacity, self.decoder.spec.max_context) - len(running.request.prompt)
        if num_tokens > room:
            raise BadRequest(f"The answer has {num_tokens:,} tokens and there is room for {room:,}; ask for more room or a shorter answer.")

    def _fill(self, running: Running, recorder: Recorder, cancelled: Callable[[], bool]) -> Prefilled:
        prompt, cache = running.request.prompt, running.cache
        num_reused = min(self._load(running, prompt, recorder), len(prompt) - 1)
        hidden = compute_rows(self.decoder, torch.from_numpy(prompt.ids[num_reused:]), num_reused, cache, recorder, cancelled)
        logits = first_logits(self.decoder, hidden, recorder)
        recorder.synchronize()
        ttft_s = recorder.now()
        return Prefilled(logits, hidden, num_reused, ttft_s, recorder.spans())

    def _load(self, running: Running, tokens: TypedTokens, recorder: Recorder) -> int:
        """Pins the longest prefix of tokens that has pages and copies it to the request's cache; returns its length in tokens."""
        path = self._path(tokens, running.has_rest)
        found = path[: self.pages.num_filled(path)]
        if len(found):
            self.tree.pin(found)
            running.pinned = found
        start_s = recorder.now()
        self.pool.load(self.pages.pages(found), running.cache)
        recorder.synchronize()
        recorder.add("copy", "load", -1, start_s, recorder.now(), len(found) * self.pool.page_bytes)
        return len(found) * self.block_tokens

    def _insert(self, running: Running) -> Served:
        request, whole = running.request, running.request.prompt + running.answer
        cpu_s = time.process_time()
        path, num_prompt = self._path(whole, running.has_rest), self._num_blocks(request.prompt, running.has_rest)
        self._now_s = max(self._now_s, request.time_s)
        follow_up = request.follow_up
        if follow_up == UNKNOWN and self._predict is not None:
            follow_up = self._predict(running.first.hidden)
        told = (request.session, request.turn, request.is_agent, request.waits_for_tool, follow_up, len(request.prompt))
        lease = self.tree.begin(CacheRequest(self._num_finished, self._now_s, *told, path, num_prompt))
        num_found, left = lease.num_cached, lease.expired
        try:
            left = left + self.tree.extend(lease).evicted
            evicted = np.array(left, np.int32)
            queue, hits = self.columns.queue[evicted], self.columns.hits[evicted]
            tree_s = time.process_time() - cpu_s
            self.pages.release(evicted)
            self._write(path[: lease.num_cached], running)
        finally:
            self.tree.end(lease)
        self._num_finished += 1
        counts = (lease.num_cached, lease.num_hits, lease.num_cached - num_found)
        return Served(running.first, len(request.prompt), path, *counts, follow_up, evicted, queue, hits, tree_s, 0.0)

    def _write(self, blocks: np.ndarray, running: Running) -> None:
        """Gives cached blocks of a path, from the first without contents on, the contents of the request's cache."""
        first = self.pages.num_filled(blocks)
        # None behind the first has contents: they come with a path, front to back, and leave from its end.
        pages = self.pages.offer(len(blocks) - first)
        self.pool.store(pages, first, running.cache)
        self.pages.bind(blocks[first:], pages)

    def _path(self, tokens: TypedTokens, has_rest: bool = False) -> np.ndarray:
        """Returns the blocks int32 [n] of tokens, the last of which, with `has_rest`, may be shorter than the others."""
        keys, kinds = tokens.block_keys(self.block_tokens), tokens.block_kinds(self.block_tokens)
        rest = tokens[len(keys) * self.block_tokens :]
        if has_rest and len(rest):
            keys, kinds = keys + rest.block_keys(len(rest)), kinds + rest.block_kinds(len(rest))
        return self._names.path(keys, kinds)

    def _num_blocks(self, tokens: TypedTokens, has_rest: bool) -> int:
        return -(-len(tokens) // self.block_tokens) if has_rest else len(tokens) // self.block_tokens
