"""Stop texts end an answer where they come, and a turn that has to be tried again is counted once."""

import pytest
from chat_worlds import ask

from engine.chat.types import first_stop
from engine.chunks.file import StoredChunk
from engine.errors import StoreError


@pytest.mark.parametrize(
    ("text", "stops", "at"),
    [
        ("abc", (), None),
        ("abc", ("", "x"), None),
        ("abc", ("bc",), 1),
        ("abcabc", ("ca", "bc"), 1),
        ("abcd", ("abcd", "bc"), 1),
        ("aab", ("ab", "aab"), 0),
    ],
)
def test_the_stop_text_counts_that_is_complete_first(text, stops, at):
    assert first_stop(text, stops) == at


@pytest.mark.parametrize("texts", [None, ()], ids=["with chunks", "without"])
def test_an_answer_ends_with_the_token_that_completes_a_stop_text(llama, texts):
    more = {} if texts is None else {"texts": texts}
    whole = llama.engine().turn(ask(max_new_tokens=24, **more))
    # A text that comes about in the middle, of more than one token.
    stop = whole.answer[6:8]
    seen = []
    turn = llama.engine().turn(ask(max_new_tokens=24, stops=("never in there", stop), **more), on_text=seen.append)
    assert whole.answer.startswith(turn.answer) and first_stop(turn.answer, (stop,)) is not None
    assert turn.num_answer_tokens < whole.num_answer_tokens and turn.finish == "stop" and seen[-1] == turn.answer
    assert all(first_stop(text, (stop,)) is None for text in seen[:-1])


def test_the_next_turn_finds_what_clients_keep_of_a_stopped_answer(llama):
    engine = llama.engine()
    whole = engine.turn(ask(turns=(), max_new_tokens=48))
    stop = whole.answer[30:33]
    kept = whole.answer[: first_stop(whole.answer, (stop,))]
    engine = llama.engine()
    request = ask(turns=(), max_new_tokens=48, stops=(stop,))
    engine.settle(request, engine.turn(request))
    later = engine.turn(ask("And when?", turns=((request.question, kept),)))
    assert later.num_prefix_computed <= 16, "no more than the block that the next question begins in"


def test_a_turn_that_is_tried_again_asks_the_prefix_cache_once(llama, monkeypatch):
    """Else the share of hits would grow with every chunk file that breaks."""
    engine, read, failed = llama.engine(), StoredChunk.read_values, []

    def fail_once(self, layer, out):
        if not failed:
            failed.append(layer)
            raise StoreError("The chunk became shorter than it was; compute it again.")
        return read(self, layer, out)

    monkeypatch.setattr(StoredChunk, "read_values", fail_once)
    turn, stats = engine.turn(ask()), engine.prefixes.stats()
    assert failed and turn.num_prefix_hits == 0 < turn.num_prefix_computed, "what its own first try left was no hit"
    assert (stats.num_requests, stats.num_hit_tokens, stats.num_computed_tokens) == (1, 0, turn.num_prefix_computed)
    parts = turn.parts_s
    total = sum(getattr(parts, name) for name in parts.__slots__)
    assert total == pytest.approx(turn.ttft_s)
