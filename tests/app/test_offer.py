"""Every method is on offer in a group with its sentence, and a new one by existing; its run can be shown."""

from dataclasses import replace

import pytest
from fake_runs import ALL_METHODS
from fakes import FakeRunFiles, FakeSession
from worlds import lighthouse, tiny_runtime

from engine.method_list import method_names, method_notes
from engine.session import Session
from engine.settings import Settings
from viz.panels.fuse_offer import DEFAULT_METHODS, GROUPS, method_groups
from viz.panels.fuse_view import choice_view, method_view, run_view
from viz.panels.page import build
from viz.panels.players import unpack
from viz.panels.request_form import parse_form

RULES = {note.name: note.rule for note in method_notes()}


@pytest.fixture
def toy():
    """Registers a method for the length of a test."""
    from engine.fusion.base import METHODS
    from engine.fusion.epic import Epic

    METHODS.register("toy")(type("Toy", (Epic,), {"__doc__": "A toy rule of nobody's (arXiv 0000.00000).", "name": "toy"}))
    yield "toy"
    del METHODS._classes["toy"]


def offered(page):
    """Returns the groups that a built page offers."""
    (block,) = [block for block in page.blocks.values() if block.elem_id == "fuse-methods"]
    return unpack(block.value)


def entries(groups):
    """Returns the offered methods by name."""
    return {method["name"]: method for group in groups["groups"] for method in group["methods"]}


def test_every_method_is_in_one_group_with_label_and_rule():
    groups = method_groups(method_names(), RULES)
    found = entries(groups)
    assert set(found) == set(method_names()) and sum(len(group["methods"]) for group in groups["groups"]) == len(found)
    assert all(method["rule"] and method["label"] for method in found.values()) and groups["usual"] == DEFAULT_METHODS
    assert [group["title"] for group in groups["groups"]] == [group.title for group in GROUPS[:-1]]
    assert found["qcfuse+primed"]["rule"].startswith("As QCFuse. Chunks computed")
    assert "arXiv 2405.16444" in found["cacheblend"]["rule"]


def test_the_page_offers_a_method_that_was_just_registered(toy):
    found = entries(offered(build(Session(Settings()), FakeRunFiles())))
    assert found[toy]["rule"] == "A toy rule of nobody's (arXiv 0000.00000)." and found[toy]["color"].startswith("#")


def test_a_fake_session_offers_what_it_has():
    assert list(entries(offered(build(FakeSession(names=("full", "qcfuse")), FakeRunFiles())))) == ["full", "qcfuse"]


def test_runs_of_all_methods_on_a_real_tiny_model_can_be_shown(tmp_path, toy):
    from engine.compare import compare

    request = replace(lighthouse(), gold_answers=("Vell",), repeats=1, max_new_tokens=4)
    run = compare(tiny_runtime(tmp_path), request, method_names())
    assert {method.method for method in run.methods} == {*ALL_METHODS, toy}
    view = run_view(run)
    assert len(view.cards["cards"]) == len(run.methods) == len(view.counts["rows"])
    for ratio in (None, 0.1, 0.0, 1.0):
        for method in run.methods:
            shown = method_view(run, method.method, ratio)
            assert shown.map.data and len(shown.text["chunks"]) == 4
            assert bool(shown.attention.data) == (method.scores is not None)
    assert choice_view(run).agreement.data and choice_view(run).overlap.data
    job = parse_form(_form(sorted(method_names())), FakeSession().scenario("harbour"), method_names())
    assert set(job.methods) == set(method_names()) and job.methods[-1] == toy


def _form(names):
    from test_request_form import GOOD

    return replace(GOOD, methods={"chosen": names})
