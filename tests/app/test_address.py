"""What a link asks for, and what a link begins with."""

import re
from types import SimpleNamespace

import gradio as gr
import pytest

from viz.panels.address import OF_TAB, UNSEEN, asked, link_base, load_of_link, run_of_link, tab_of_link
from viz.player.bundle import PLAYER_DIR

TABS, SCENARIOS, VIEWS = ("fuse", "play", "evict"), ("harbour", "injection"), ("rates", "film")


def request(**query):
    return SimpleNamespace(query_params=query)


@pytest.mark.parametrize(
    ("query", "tab", "scenario"),
    [
        ({}, None, None),
        ({"tab": "play", "sc": "injection"}, "play", "injection"),
        ({"tab": "<b>", "sc": "../harbour"}, None, None),
        ({"tab": "Play", "sc": "harbour"}, None, "harbour"),
        ({"t": "0.5", "m": "full"}, None, None),
    ],
    ids=["nothing", "both", "hostile", "case", "other keys"],
)
def test_a_link_asks_for_what_the_page_has(query, tab, scenario):
    assert asked(query, TABS, SCENARIOS) == (tab, scenario, None)


def tabs_of(names=TABS):
    with gr.Blocks(), gr.Tabs() as tabs:
        for name in names:
            gr.Tab(name, id=name)
    return tabs


def test_the_callbacks_set_what_is_asked_for_and_leave_the_rest():
    tabs = tabs_of()
    assert run_of_link(SCENARIOS, tabs)(request(sc="injection"))[0]["value"] == "injection"
    assert tab_of_link(tabs)(request(tab="evict")).selected == "evict"
    unchanged = type(gr.skip())
    for query in ({}, {"tab": "fuse"}, {"tab": "none", "sc": "none"}):
        scenario, shown = run_of_link(SCENARIOS, tabs)(request(**query))
        assert isinstance(scenario, unchanged) and shown is None
        assert isinstance(tab_of_link(tabs)(request(**query)), unchanged)


def test_a_link_to_another_tab_leaves_the_first_one_unseen_whatever_tabs_come_later():
    tabs = tabs_of(())
    choose = run_of_link(SCENARIOS, tabs)
    assert choose(request(tab="late"))[1] is None
    with tabs:
        gr.Tab("late", id="late")
    assert choose(request(tab="late"))[1] == UNSEEN


def test_a_link_into_eviction_asks_for_a_load_and_a_view():
    load, view = load_of_link(SCENARIOS, VIEWS)(request(tab="evict", sc="injection", view="film"))
    assert load["value"] == "injection" and view.selected == "film"
    for query in ({"sc": "injection", "view": "film"}, {"tab": "evict", "sc": "none", "view": "<b>"}, {"tab": "evict", "view": "rates"}):
        assert all(isinstance(part, type(gr.skip())) for part in load_of_link(SCENARIOS, VIEWS)(request(**query)))


def test_the_page_knows_every_key_that_the_player_writes():
    fields = (PLAYER_DIR / "core" / "url.js").read_text().partition("const FIELDS = {")[2].partition("\n};")[0]
    assert {*re.findall(r'\w+: \["(\w+)"', fields)} == {*OF_TAB, "tab"} - {"view"}


def test_on_a_space_a_link_names_the_space():
    assert link_base({}) == ""
    assert link_base({"SPACE_ID": "someone/fusescope", "SPACE_HOST": "x.hf.space"}) == "https://huggingface.co/spaces/someone/fusescope"
    assert link_base({"SPACE_HOST": "someone-fusescope.hf.space"}) == "https://someone-fusescope.hf.space/"
