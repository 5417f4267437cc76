"""Turns of conversations: what is found, what stays exact, what is said, whatever happens."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from chat_worlds import NOTES, TALK, ask, assert_pages_are_exact, live_policies, transformers_answer

from engine.chat.history import Turn
from engine.errors import BadRequest, Cancelled, UnknownName
from engine.protection import Protection
from engine.runfile import dump_run, parse_run
from viz.player.pack import pack_run

BLOCK = 16


def converse(engine, questions, method="reuse", name="lamp", **more):
    """Returns the turns of a conversation whose answers are the model's, settled one after the other."""
    turns, told = [], []
    for question in questions:
        request = ask(question, told, method=method, conversation=name, **more)
        turn = engine.turn(request)
        engine.settle(request, turn)
        turns.append(turn)
        told.append((question, turn.answer))
    return turns


def test_a_settled_turn_is_all_hits(world):
    turns = converse(world.engine(), ["Who lit the lamp?", "Where was she born?", "When does it close?"])
    assert turns[0].num_prefix_hits == 0
    for before, turn in itertools.pairwise(turns):
        assert turn.num_prefix_computed == 0 and turn.num_prefix_hits > before.num_prefix_hits


def test_a_turn_that_was_not_settled_is_computed_with_the_next_one(llama):
    engine, request = llama.engine(), ask(turns=TALK[:1], method="full")
    engine.turn(request)
    later = engine.turn(ask(turns=TALK, method="full"))
    settled = llama.engine()
    asked = ask(TALK[1][0], TALK[:1], method="full")
    settled.settle(asked, replace(settled.turn(asked), answer=TALK[1][1]))
    same = settled.turn(ask(turns=TALK, method="full"))
    assert 0 < later.num_prefix_hits < same.num_prefix_hits and later.answer == same.answer


def test_nothing_read_behind_a_fused_chunk_enters_the_cache(world):
    """Two conversations about different chunks by turns, nothing recomputed: every page is what an exact forward pass gives."""
    engine = world.engine(capacity=200)
    told = {"lamp": [], "ferry": []}
    for step in range(6):
        name = ("lamp", "ferry")[step % 2]
        texts = NOTES if name == "lamp" else NOTES[::-1]
        request = ask(f"Question {step}?", told[name], texts, method="reuse", conversation=name)
        turn = engine.turn(request)
        engine.settle(request, turn)
        told[name].append((f"Question {step}?", turn.answer))
        engine.prefixes.server.check_integrity()
    assert assert_pages_are_exact(engine, world.hf) > 15


def test_conversations_share_their_common_start_alone(llama):
    engine = llama.engine()
    converse(engine, ["Who lit the lamp?", "Where was she born?"], name="one")
    (other,) = converse(engine, ["Who lit the lamp?"], name="two", max_new_tokens=2)
    assert other.num_prefix_hits == len(llama.runtime.prompts.system)


@pytest.mark.parametrize("texts", [NOTES, ()], ids=["fused", "plain"])
def test_a_cancelled_turn_leaves_no_reference(llama, texts):
    engine, request = llama.engine(), ask(texts=texts, method="qcfuse")
    expected = llama.engine().turn(request).answer
    for num_asked in itertools.count():
        asked = itertools.count()
        try:
            answer = engine.turn(request, cancelled=lambda asked=asked, most=num_asked: next(asked) >= most).answer
        except Cancelled:
            engine.prefixes.server.check_integrity()
            columns = engine.prefixes.server.columns
            assert not columns.num_pins.any() and not columns.num_refs.any()
            continue
        break
    assert num_asked > 5 and answer == expected
    assert_pages_are_exact(engine, llama.hf)


@pytest.mark.parametrize("failing", ["load", "store"])
def test_an_error_of_the_device_leaves_the_cache_clean(llama, monkeypatch, failing):
    engine, request = llama.engine(), ask(method="qcfuse")
    engine.turn(ask(turns=TALK[:1]))

    def fail(*_):
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(engine.prefixes.server.pool, failing, fail)
        with pytest.raises(RuntimeError, match="gone"):
            engine.turn(request)
    engine.prefixes.server.check_integrity()
    assert engine.turn(request).answer == llama.engine().turn(request).answer
    assert_pages_are_exact(engine, llama.hf)


@pytest.mark.parametrize("capacity", [1, 3])
def test_a_cache_smaller_than_a_turn_still_answers(world, capacity):
    request = ask(method="full")
    expected = world.engine().turn(request).answer
    engine = world.engine(capacity)
    answers = [engine.turn(request).answer for _ in range(2)]
    assert answers == [expected] * 2 and engine.prefixes.stats().num_free == 0
    engine.prefixes.server.check_integrity()


def test_an_edited_turn_falls_back_to_the_common_start(llama):
    engine = llama.engine()
    engine.turn(ask(turns=TALK))
    edited = (TALK[0], ("When do ferries leave?", TALK[1][1]))
    turn = engine.turn(ask(turns=edited))
    pasts = [engine.history.past("", [Turn(*pair) for pair in talk]).segment.ids for talk in (TALK, edited)]
    shared = int(np.argmin(np.equal(*(ids[: min(map(len, pasts))] for ids in pasts))))
    assert turn.num_prefix_hits == shared // BLOCK * BLOCK > 0
    assert turn.answer == llama.engine().turn(ask(turns=edited)).answer


def test_the_pool_never_exceeds_its_bytes(llama):
    engine = llama.engine(capacity=14)
    size = engine.prefixes.stats().size_bytes
    assert size <= llama.runtime.settings.prefix_bytes
    for name in ("one", "two", "three"):
        converse(engine, [f"Who lit lamp {name}?", "Where was she born?"], name=name)
        stats = engine.prefixes.stats()
        assert stats.size_bytes == size == engine.prefixes.server.pool.size_bytes
        assert sum(stats.queues.values()) == sum(stats.kinds.values()) == stats.capacity_blocks - stats.num_free
        assert engine.prefixes.server.tree.size <= stats.capacity_blocks
    assert sum(stats.evicted.values()) == engine.prefixes.server.tree.num_evicted > 0


@pytest.mark.parametrize("policy", live_policies())
def test_every_policy_serves_conversations(llama, policy):
    engine, clean = llama.engine(capacity=20), llama.engine(capacity=200)
    for name in ("one", "two", "one"):
        turns = converse(engine, ["Who lit the lamp?", "Where was she born?"], name=name, policy=policy)
        assert [turn.answer for turn in turns] == [turn.answer for turn in converse(clean, ["Who lit the lamp?", "Where was she born?"])]
        engine.prefixes.server.check_integrity()
    assert engine.prefixes.stats().policy == policy


def test_another_policy_begins_empty_and_says_so(llama):
    engine = llama.engine()
    engine.turn(ask())
    turn = engine.turn(ask(policy="lru"))
    assert turn.num_prefix_hits == 0 and any("now under lru" in notice for notice in turn.notices)
    assert engine.turn(ask()).num_prefix_hits > 0, "no policy named keeps the one in use"
    for policy, error in (("min", BadRequest), ("nonsense", UnknownName)):
        with pytest.raises(error, match=policy):
            engine.turn(ask(policy=policy))


def test_in_public_nobody_changes_the_policy_that_all_share(llama, monkeypatch):
    public = replace(llama.runtime.settings, protection=Protection(public=True))
    monkeypatch.setattr(llama.runtime, "settings", public)
    engine = llama.engine()
    engine.settle(ask(), engine.turn(ask()))
    with pytest.raises(BadRequest, match="'lru' would empty it"):
        engine.turn(ask(policy="lru"))
    assert engine.turn(ask(policy="saecache")).num_prefix_hits > 0


def test_policies_learn_from_turns_alone(llama):
    """Settling and comparing touch blocks; neither is a look-up, so neither is a hit."""
    engine, request = llama.engine(), ask(method="reuse")
    turn = engine.turn(request)
    columns, gaps = engine.prefixes.server.columns, engine.prefixes.server.tree.ranker.chat._window
    hits = columns.hits.sum()
    engine.settle(request, replace(turn, answer="In Vell, they say, a village of forty houses."))
    engine.turn(replace(request, compare=True))
    assert (columns.hits.sum(), len(gaps), engine.prefixes.stats().num_requests) == (hits, 0, 1)
    engine.turn(request)
    assert columns.hits.sum() > hits and (len(gaps), engine.prefixes.stats().num_requests) == (1, 2)


def test_blocks_are_typed_by_role(llama):
    engine = llama.engine()
    engine.turn(ask(turns=(("Who lit the lamp of Merrow Point, and when?", "Ada Quill lit it, in the year 1871, it is said."),)))
    kinds = engine.prefixes.stats().kinds
    assert kinds["system"] and kinds["user"] and kinds["response"] and not kinds["tool_output"]


def test_oldest_turns_leave_with_a_sentence_when_the_context_is_full(llama):
    engine = llama.engine(capacity=128)
    talk = tuple((f"Question {i}, which is rather long? {'so ' * 30}", f"Answer {i}.") for i in range(14))
    turn = engine.turn(ask(turns=talk))
    dropped = turn.num_turns_dropped
    assert dropped and dropped % 4 == 0 and turn.num_prompt_tokens + 6 <= 2048
    assert any(f"oldest {dropped} turns are left out" in notice for notice in turn.notices)
    text = "".join(turn.tokens)
    assert f"Question {dropped - 1}," not in text and f"Question {dropped}," in text and "Question 13," in text
    again = engine.turn(ask(turns=(*talk, ("And then?", "No."))))
    assert again.num_turns_dropped == dropped and again.num_prefix_hits > turn.num_prompt_tokens // 2


def test_what_is_too_long_without_any_turn_is_refused(llama):
    engine = llama.engine()
    with pytest.raises(BadRequest, match="reads at most 2,048, so drop chunks"):
        engine.turn(ask(texts=["x" * 1100, "y" * 1100]))
    with pytest.raises(BadRequest, match="reads at most 2,048"):
        engine.turn(ask(turns=(), texts=(), question="why " * 700))
    assert engine.turn(ask()).answer is not None


@pytest.mark.parametrize("turns", [(), TALK], ids=["first", "third"])
def test_a_turn_without_chunks_is_exact_and_fuses_nothing(world, turns):
    engine = world.engine()
    turn = engine.turn(ask(turns=turns, texts=(), max_new_tokens=8))
    ids = np.concatenate([world.runtime.prompts.tokenize(piece, special=True).ids for piece in turn.tokens])
    assert world.runtime.text(transformers_answer(world.hf, ids, 8)) == turn.answer
    assert turn.run is None and turn.full is None and turn.num_fused_loaded == turn.num_recomputed == 0
    assert "passages above" not in "".join(turn.tokens)


@pytest.mark.parametrize("method", ["full", "reuse", "qcfuse", "cacheblend"])
def test_sources_cover_the_prompt_and_times_add_up(world, method):
    engine = world.engine()
    engine.turn(ask(turns=TALK[:1]))
    turn = engine.turn(ask(method=method))
    assert [span.start for span in turn.sources] == [0, *(span.stop for span in turn.sources[:-1])]
    assert turn.sources[-1].stop == turn.num_prompt_tokens == len(turn.run.tokens)
    sizes = {name: sum(span.stop - span.start for span in turn.sources if span.source == name) for name in {s.source for s in turn.sources}}
    counts = (turn.num_prefix_hits, turn.num_prefix_computed, turn.num_fused_loaded, turn.num_recomputed, turn.num_question)
    names = ("prefix hit", "prefix computed", "chunk loaded", "chunk recomputed", "question")
    assert [sizes.get(name, 0) for name in names] == list(counts)
    recomputed = turn.num_recomputed
    assert recomputed == (0 if method == "reuse" else turn.run.num_doc_tokens if method == "full" else int(0.3 * turn.run.num_doc_tokens))
    parts = [getattr(turn.parts_s, field) for field in turn.parts_s.__dataclass_fields__]
    assert sum(parts) == pytest.approx(turn.ttft_s, abs=1e-9) and min(parts) > -1e-9 and turn.parts_s.prefix_load > 0
    assert turn.run.method(method).ttft_s == turn.ttft_s


def test_compared_methods_stand_behind_the_same_prefix(world):
    turn = world.engine().turn(ask(method="qcfuse", compare=True))
    full, fused = turn.full, turn.run.method("qcfuse")
    length = turn.num_prefix_hits + turn.num_prefix_computed
    assert turn.num_prefix_hits == length, "the first method pays for no prefix that the second finds"
    assert full.rows.tolist() == list(range(length, turn.num_prompt_tokens))
    assert fused.quality.kl_to_full is not None and fused.kv_distance is not None
    assert [m.method for m in turn.run.methods] == ["full", "qcfuse"] and turn.answer == fused.answer


def test_the_run_is_a_file_and_a_film_like_any_other(llama):
    run = llama.engine().turn(ask(method="qcfuse", compare=True)).run
    again = parse_run(dump_run(run))
    assert again.tokens == run.tokens and again.methods[1].rows.tolist() == run.methods[1].rows.tolist()
    assert [method["name"] for method in pack_run(again)["methods"]] == ["full", "qcfuse"]


def test_same_seed_gives_the_same_turn(llama):
    request = ask(method="qcfuse", temperature=0.8, seed=5, max_new_tokens=12)
    first, again = llama.engine().turn(request), llama.engine().turn(request)
    assert first.answer == again.answer and first.sources == again.sources


def test_a_damaged_chunk_is_computed_again(llama, tmp_path):
    engine, request = llama.engine(), ask(method="reuse")
    expected = engine.turn(request).answer
    for path in (llama.runtime.settings.cache_dir / "chunks").glob("*.safetensors"):
        path.write_bytes(b"overwritten")
    turn = engine.turn(request)
    assert turn.answer == expected and any("set aside" in notice for notice in turn.notices)
