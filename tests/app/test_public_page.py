"""The page where strangers come in: what they may not use is switched off with its reason, nothing fails on the press."""

from dataclasses import dataclass, field

import gradio as gr
import pytest
from fakes import FakeRunFiles, FakeSession

from engine.protection import Protection
from engine.settings import Settings
from viz.panels.model_offer import model_offer
from viz.panels.page import build


@dataclass
class OneModel(FakeSession):
    """Serves strangers, with one model."""

    settings: Settings = field(default_factory=lambda: Settings(protection=Protection.for_public()))
    kv_delay_s: float | None = None

    def model_names(self):
        return ("bundled",)


def part(page, elem_id):
    return next(block for block in page.blocks.values() if block.elem_id == elem_id)


@pytest.fixture(scope="module")
def page():
    return build(OneModel(), FakeRunFiles())


@pytest.mark.parametrize("elem_id", ["chat-model", "fuse-model"])
def test_one_listed_model_is_shown_and_cannot_be_changed(page, elem_id):
    model = part(page, elem_id)
    assert model.interactive is False and not model.allow_custom_value and "one model" in model.info and model.value == "bundled"


def test_the_policy_of_the_shared_prefix_cache_stays_and_says_why(page):
    policy = part(page, "chat-policy")
    assert policy.interactive is False and "all visitors" in policy.info
    assert part(page, "fuse-load").interactive is False


def test_several_listed_models_can_be_chosen_and_no_other_typed():
    session = FakeSession(settings=Settings(protection=Protection.for_public()), kv_delay_s=None)
    page = build(session, FakeRunFiles())
    for elem_id in ("chat-model", "fuse-model"):
        model = part(page, elem_id)
        assert not model.allow_custom_value and [value for _, value in model.choices] == list(session.model_names())
        assert model.interactive is not False and "path" not in model.info
    assert part(page, "fuse-load").interactive


def test_at_home_any_model_may_be_typed():
    offer = model_offer(FakeSession(kv_delay_s=None), "loaded at once")
    assert offer["allow_custom_value"] and "local path; loaded at once." in offer["info"]


def test_a_page_that_nobody_asks_leaves_the_cores_to_the_engine(page):
    queue, own = page._queue, gr.Blocks()._queue
    assert own.sleep_when_free < queue.sleep_when_free < 0.05, "seldom enough, and nobody notices"
    assert own.progress_update_sleep_when_free <= queue.progress_update_sleep_when_free <= 0.1
