"""The page opens with a recorded run of every scenario: whole, labelled as such, and of the scenario as it stands."""

import pytest
from worlds import lighthouse, tiny_runtime

from engine.compare import compare
from engine.method_list import method_names
from engine.runfile import dump_run, parse_run
from engine.scenarios import load_scenarios
from engine.session import Session
from engine.settings import Settings

SCENARIOS = load_scenarios()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_recorded_run_belongs_to_its_scenario(name):
    run = Session(Settings()).recorded(name)
    scenario = SCENARIOS[name]
    assert run is not None and run.provenance.mode == "replay" and run.scenario == name
    assert run.question == scenario.questions[0].question and run.gold_answers == scenario.questions[0].answers
    assert {"full", "reuse", "qcfuse", "cacheblend", "epic", "qcall"} <= {m.method for m in run.methods}
    assert all(len(m.ttft_repeats_s) >= 3 for m in run.methods)
    text = "".join(run.tokens)
    assert all(passage.text in text for passage in scenario.passages)
    assert all(chunk.source == "computed" and chunk.precompute_s > 0 for chunk in run.chunks)


def test_runs_of_every_method_can_be_saved_and_read(tmp_path):
    runtime = tiny_runtime(tmp_path)
    run = compare(runtime, lighthouse(max_new_tokens=2, gold_answers=("Vell",)), method_names())
    read = parse_run(dump_run(run))
    assert [method.params for method in read.methods] == [method.params for method in run.methods]
    assert {method.method for method in read.methods} == set(method_names())
