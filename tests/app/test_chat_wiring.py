"""The Chat tab's scripts, style sheet and wiring fit together, and no text becomes markup."""

import re
from pathlib import Path

import pytest
from fakes import FakeRunFiles, FakeSession

from viz.panels.chat_view import SOURCES
from viz.panels.page import build, launch_options

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "chat"
SCRIPTS = {path.stem: path.read_text() for path in FOLDER.glob("*.js")}
CSS = (FOLDER / "chat.css").read_text()


@pytest.fixture(scope="module")
def page():
    return build(FakeSession(kv_delay_s=None), FakeRunFiles())


def wired(page, elem_id):
    """Returns the events of a component that something listens to."""
    number = next(number for number, block in page.blocks.items() if block.elem_id == elem_id)
    return {event for fn in page.fns.values() for target, event in fn.targets if target == number}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_set_no_markup_and_ask_no_other_host(name):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://|fetch\(", SCRIPTS[name])


def test_the_style_sheet_asks_no_other_host_and_is_served():
    assert not re.search(r"https?://|@import|url\(", CSS)
    assert FOLDER / "chat.css" in launch_options()["css_paths"]


@pytest.mark.parametrize(("script", "elem_id"), [("thread", "chat-thread"), ("library", "chat-documents")])
def test_whatever_a_script_triggers_is_heard(page, script, elem_id):
    assert set(re.findall(r'trigger\("(\w+)"', SCRIPTS[script])) == wired(page, elem_id)


def test_files_are_refused_by_the_library_which_says_why_and_none_is_passed_over(page):
    drop = next(block for block in page.blocks.values() if block.elem_id == "chat-drop")
    assert drop.file_types is None
    # What is dropped while other files are read has events of its own.
    steps = [fn for fn in page.fns.values() if getattr(fn.fn, "__name__", "") in ("begin_upload", "upload", "added")]
    assert [fn.trigger_mode for fn in steps] == ["multiple"] * 3


def test_every_source_has_a_hatch_of_its_own_in_the_style_sheet():
    hatches = {style.hatch for style in SOURCES.values()} - {"plain"}
    assert hatches == set(re.findall(r"\.fs-chat-hatch-(\w+)", CSS))


def test_a_closed_page_takes_its_documents_along(page):
    unloads = [fn for fn in page.fns.values() if any(event == "unload" for _, event in fn.targets)]
    assert [fn.fn.__name__ for fn in unloads] == ["left"]


def test_answers_wait_in_the_engines_lane_and_are_no_public_endpoint(page):
    answers = [fn for fn in page.fns.values() if str(fn.api_name).startswith("chat_answer")]
    lanes = {(fn.concurrency_id, fn.api_visibility) for fn in answers}
    assert len(answers) == 3 and lanes == {("engine", "private")}
