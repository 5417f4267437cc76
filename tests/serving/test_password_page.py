"""The page of a public server behind a password."""

import gradio_client
import httpx
import pytest
from app_process import running_app

PASSWORD = "open sesame, please"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    limits = {
        "FUSESCOPE_PUBLIC": "1",
        "FUSESCOPE_PASSWORD": PASSWORD,
        "FUSESCOPE_REQUESTS_PER_MINUTE": "1",
        "FUSESCOPE_MAX_REQUEST_MIB": "1",
    }
    with running_app(tmp_path_factory.mktemp("closed"), **limits) as app:
        yield app


def test_the_page_asks_for_the_password_and_takes_no_other(app):
    with httpx.Client(base_url=app.url, trust_env=False) as client:
        assert client.get("/config").status_code == 401
        assert client.get("/gradio_api/info").status_code == 401
        assert client.post("/login", data={"username": "anna", "password": "wrong"}).status_code == 400
        assert client.post("/login", data={"username": "anna", "password": PASSWORD}).status_code == 200
        assert client.get("/config").status_code == 200


def test_programs_that_know_it_are_held_to_the_quota(app):
    client = gradio_client.Client(app.url, auth=("anna", PASSWORD), verbose=False)
    ask = {"question": "Who?", "passages": "Ada Quill lit the lamp.", "api_name": "/answer"}
    # Both at once: however long an answer takes, the second request comes within the minute of the first.
    told = [job.exception() or job.result() for job in [client.submit(**ask) for _ in range(2)]]
    (answer,) = [one for one in told if not isinstance(one, Exception)]
    (refusal,) = [one for one in told if isinstance(one, Exception)]
    assert answer["mode"] == "live"
    # The package shows the status alone; a browser shows the sentence that comes with it.
    assert isinstance(refusal, httpx.HTTPStatusError) and "429 Too Many Requests" in str(refusal)


def test_agents_do_not_come_in_by_a_side_door(app):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    kinds = {"Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{app.url}/gradio_api/mcp/", json=hello, headers=kinds, trust_env=False, follow_redirects=True)
    assert answer.status_code in (401, 404, 405) and "answer" not in answer.text


def test_long_requests_are_refused_everywhere(app):
    for path in ("/v1/documents", "/gradio_api/upload", "/gradio_api/queue/join"):
        answer = httpx.post(app.url + path, content=b"x" * (2**20 + 1), trust_env=False)
        assert answer.status_code == 413, path


def test_the_password_is_not_printed(app):
    assert PASSWORD not in app.log.read_text()
