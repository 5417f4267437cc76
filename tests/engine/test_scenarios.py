"""Every bundled scenario keeps to its rules, so that what is shown on it is right."""

import pytest

from engine.scenarios import SCENARIO_DIR, load_scenarios

SCENARIOS = load_scenarios()


def test_there_are_enough_of_every_kind():
    assert len(SCENARIOS) >= 8
    assert len({s.language for s in SCENARIOS.values()} - {"en"}) >= 2
    assert any(not q.answerable for s in SCENARIOS.values() for q in s.questions)
    assert {path.stem for path in SCENARIO_DIR.glob("*.json")} == set(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_keeps_to_its_rules(name):
    scenario = SCENARIOS[name]
    assert scenario.fictional and scenario.licence == "Apache-2.0" and "fictional" in scenario.description.lower()
    assert 8 <= len(scenario.passages) <= 16 and 4 <= len(scenario.questions) <= 8
    texts = {p.id: p.text for p in scenario.passages}
    assert len(texts) == len(scenario.passages)
    assert all(120 <= len(text.split()) <= 300 for text in texts.values())
    assert {q.hops for q in scenario.questions} >= {1, 2}
    for question in scenario.questions:
        assert all(support.span in texts[support.passage] for support in question.supporting)
        if question.answerable:
            assert any(question.answers[0] in support.span for support in question.supporting)
        else:
            assert not question.supporting


def test_requests_know_their_gold_answers():
    scenario = next(iter(SCENARIOS.values()))
    known = scenario.questions[0]
    request = scenario.request(known.id)
    assert request.question == known.question and request.gold_answers == known.answers
    assert scenario.request("What else?").gold_answers == ()
