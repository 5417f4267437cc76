"""The live run of the Evict tab without a browser: the form, what is drawn while it runs, how it ends."""

import numpy as np
import pytest
from evict_samples import made_run

from engine.cache_types import LiveAsk, LivePoint
from engine.errors import BadRequest, Cancelled
from engine.types import Status
from viz.figures.evict_live import evict_live_figure, evict_live_held_figure, evict_live_info, evict_live_words
from viz.panels.evict_callbacks import Running
from viz.panels.evict_live_callbacks import NUM_SHOWN, LiveCallbacks
from viz.panels.evict_live_view import EMPTY, live_view, parse_live
from viz.panels.players import unpack

NAMES = ("lru", "saecache", "sae_g")
FORM = ("saecache", 20, 25, 3)
BOTH = ("lru", "saecache")


def point(policy, index, ttft_s, hit_tokens=50):
    queues = (40, 0, 0, 0) if policy == "lru" else (5, 10, 20, 5)
    return LivePoint(policy, index, "chat", ttft_s, 100, hit_tokens, 2, queues, 10)


def points(lru, saecache):
    return [point(*row) for i, pair in enumerate(zip(lru, saecache, strict=True)) for row in zip(BOTH, (i, i), pair, strict=True)]


class FakeLive:
    """Tells made-up points, then runs; or fails, or is stopped half way."""

    def __init__(self, error=None, num=3):
        self.error, self.num, self.asked, self.num_closed = error, num, [], 0

    def policy_names(self):
        return NAMES

    def stream(self, ask, cancelled):
        self.asked.append(ask)
        try:
            for i in range(self.num):
                for told in points([0.2], [0.1]):
                    yield point(told.policy, i, told.ttft_s)
                yield Status(f"Request {i + 1}", i / self.num)
            if self.error:
                raise self.error
            for name in ask.policies:
                yield made_run(name)
        finally:
            self.num_closed += 1


def test_the_form_becomes_an_ask():
    assert parse_live(NAMES, *FORM) == LiveAsk(BOTH, 20, 0.25, 3)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (0, "lru", "cannot run against LRU; choose one of: saecache, sae_g"),
        (0, "min", "'min' cannot run"),
        (1, 0, "has 0 requests"),
        (1, None, "both must be numbers"),
        (2, 100, "less than 100 %"),
        (2, "x", "is x %"),
        (3, -1, "not below 0"),
    ],
)
def test_a_form_that_does_not_hold_is_one_sentence(place, value, said):
    form = [*FORM]
    form[place] = value
    with pytest.raises(BadRequest, match=said):
        parse_live(NAMES, *form)
    told, ask, running = LiveCallbacks(FakeLive()).begin(None, *form)
    assert unpack(told)["kind"] == "error" and ask is None and not isinstance(running, Running)


def test_times_ratio_and_hits_are_those_of_the_points():
    rng = np.random.default_rng(0)
    lru = rng.uniform(0.1, 1.0, 40)
    info = evict_live_info([*points(lru, 0.8 * lru), point("lru", 40, 9.0)], BOTH)
    first, second = info.policies
    assert first.ttft_s.tolist() == lru.tolist() and first.to_first is None and info.kinds == ("chat",) * 40
    assert second.mean_s.value == pytest.approx(0.8 * lru.mean()) and second.mean_s.lo < second.mean_s.value < second.mean_s.hi
    # Paired: a ratio that is the same for every request has no spread, however much requests differ.
    assert (second.to_first.lo, second.to_first.value, second.to_first.hi) == pytest.approx((0.8, 0.8, 0.8))
    assert second.hit_share == 0.5 and second.num_evicted == 80 and second.held[-1].tolist() == [5, 10, 20, 5, 10]


@pytest.mark.parametrize(("factor", "said"), [(0.5, "is faster than LRU: 0.50×"), (2.0, "is slower than LRU: 2.00×")])
def test_the_words_say_who_is_faster_and_how_sure_that_is(factor, said):
    lru = np.linspace(0.2, 1.0, 10)
    assert said in evict_live_words(evict_live_info(points(lru, factor * lru), BOTH))
    unsure = evict_live_info(points([0.2, 1.0, 0.5], [1.0, 0.2, 0.5]), BOTH)
    assert "no difference is shown yet" in evict_live_words(unsure) and evict_live_words(None) == ""
    assert evict_live_info(points([0.2], [0.1]), BOTH).policies[1].to_first is None
    assert evict_live_info([point("lru", 0, 0.2)], BOTH) is None


def test_the_pictures_hold_the_points():
    info = evict_live_info(points([0.2, 0.4], [0.1, 0.3]), BOTH)
    marks = {trace.name: list(trace.y) for trace in evict_live_figure(info).data if trace.mode == "markers"}
    assert marks == {"LRU": [0.2, 0.4], "SAECache (paper)": [0.1, 0.3]}
    held = evict_live_held_figure(info, "saecache")
    assert {trace.name: list(trace.y) for trace in held.data} == {
        "evict first": [5, 5], "structural": [10, 10], "chat": [20, 20], "agent": [5, 5], "free": [10, 10],
    }  # fmt: skip
    assert [trace.name for trace in evict_live_held_figure(info, "lru").data] == ["all blocks", "free"]


def test_every_picture_says_live_and_an_empty_one_why():
    full, empty = live_view(points([0.2, 0.4], [0.1, 0.3]), BOTH), live_view((), ())
    assert all(">LIVE<" in figure.layout.title.text for figure in (full.times, full.held)) and "LIVE" in full.table["caption"]
    assert full.table["rows"][1][0] == "SAECache (paper)" and full.table["rows"][1][3].startswith("0.67× [")
    assert empty.table["rows"] == [] and empty.table["reason"] == EMPTY and "LIVE" not in empty.table["caption"]
    assert any(EMPTY in (note.text or "") for note in empty.times.layout.annotations)


def test_a_run_ends_in_a_board_of_both_policies():
    live = FakeLive()
    told, ask, running = LiveCallbacks(live).begin(None, *FORM)
    outputs = list(LiveCallbacks(live).run(ask, running))
    assert unpack(told)["kind"] == "busy" and live.asked == [LiveAsk(BOTH, 20, 0.25, 3)] and live.num_closed == 1
    last = outputs[-1]
    assert len(last) == 2 + NUM_SHOWN and unpack(last[0])["kind"] == "done" and last[-1].policies == BOTH
    assert unpack(last[3])["rows"][0][1] == "3"
    assert next(LiveCallbacks(live).run(ask, running))[0] == outputs[0][-1], "begun once, however many events hear of it"


def test_what_was_served_stays_where_a_run_fails_or_is_stopped():
    for error, kind in ((BadRequest("No room."), "error"), (Cancelled("Stopped."), None)):
        last = list(LiveCallbacks(FakeLive(error)).run(LiveAsk(BOTH, 20), Running()))[-1]
        assert unpack(last[3])["rows"][0][1] == "3" and "value" not in last[-1]
        assert (unpack(last[0])["kind"] if kind else None) == kind
    running = Running()
    assert "Stopped" in unpack(LiveCallbacks(FakeLive()).stopped(running))["message"] and running.is_set()
    assert "Nothing runs live" in unpack(LiveCallbacks(FakeLive()).stopped(None))["message"]
    second = LiveCallbacks(FakeLive()).begin(started := Running(), *FORM)
    assert started.is_set() and isinstance(second[2], Running)
