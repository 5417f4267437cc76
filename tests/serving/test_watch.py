"""Health and metrics."""

from dataclasses import replace

import httpx
import pytest
from fake_runs import fake_run, harbour_scenario
from prometheus_client.parser import text_string_to_metric_families
from serving_world import ScriptedSession, answering, api_server, turn_of

from engine.chat.types import PrefixStats
from engine.errors import BadRequest
from engine.protection import Protection
from engine.serving.metrics import Metrics
from engine.settings import Settings

STATS = PrefixStats("saecache", 16, 100, 1000, {"chat": 3, "agent": 4}, {"user": 7}, 93, 5, 64, 32, {"chat": 2, "agent": 0})


def values(metrics):
    """Returns every sample by name and label values."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


@pytest.mark.parametrize(("state", "status"), [("idle", 200), ("loading", 503), ("ready", 200), ("failed", 503)])
def test_health_is_the_state_of_the_model(state, status):
    with api_server(ScriptedSession(answering("x"), state=state)) as url:
        response = httpx.get(f"{url}/healthz")
    assert response.status_code == status and response.json()["status"] == state


def test_turns_runs_and_errors_are_counted():
    session = ScriptedSession(answering("x"), stats=STATS, num_waiting=3)
    metrics = Metrics(session)
    turn = turn_of("a")
    session.outcomes.tell(turn)
    session.outcomes.tell(turn_of("b", method="full", ttft_s=3.0, num_recomputed=0))
    run = fake_run(harbour_scenario().request("q1"), ("full", "qcfuse"))
    session.outcomes.tell(run)
    with pytest.raises(BadRequest), session.outcomes.errors_told():
        raise BadRequest("A secret question.")
    found = values(metrics)
    assert found["fusescope_ttft_seconds_count", "full"] == 2 and found["fusescope_ttft_seconds_count", "qcfuse"] == 2
    assert found["fusescope_ttft_seconds_sum", "full"] == pytest.approx(3.0 + run.method("full").ttft_s)
    assert found["fusescope_ttft_seconds_bucket", "2.0", "full"] <= 1 < found["fusescope_ttft_seconds_bucket", "5.0", "full"]
    assert found["fusescope_prompt_tokens_total", "qcfuse"] == turn.num_prompt_tokens + len(run.tokens)
    assert found["fusescope_hit_tokens_total", "prefix"] == 8
    assert found["fusescope_hit_tokens_total", "chunk"] == 4 + sum(m.num_cache_hits for m in run.methods)
    assert found["fusescope_recomputed_tokens_total", "qcfuse"] == 1 + run.num_doc_tokens - run.method("qcfuse").num_cache_hits
    assert found["fusescope_errors_total", "BadRequest"] == 1
    assert found["fusescope_queue_length",] == 3 and found["fusescope_ready",] == 1
    assert found["fusescope_prefix_blocks", "chat"] == 3 and found["fusescope_prefix_evictions_total", "chat"] == 2
    assert found["fusescope_prefix_capacity_blocks",] == 100
    assert b"secret" not in metrics.text()


def test_two_sessions_in_one_process_are_counted_apart():
    sessions = [ScriptedSession(answering("x")) for _ in range(2)]
    first, second = map(Metrics, sessions)
    sessions[0].outcomes.tell(turn_of("a"))
    assert ("fusescope_ttft_seconds_count", "qcfuse") in values(first)
    assert ("fusescope_ttft_seconds_count", "qcfuse") not in values(second)


def test_metrics_need_the_password_and_health_does_not():
    closed = replace(Settings(model="tiny"), protection=Protection(password="a password"))
    with api_server(ScriptedSession(answering("x"), settings=closed)) as url:
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/metrics").status_code == 401
        answer = httpx.get(f"{url}/metrics", headers={"Authorization": "Bearer a password"})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    assert "fusescope_queue_length 0.0" in answer.text
