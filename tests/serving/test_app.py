"""`python app.py` seen by programs: the examples, `gradio_client`, MCP, and what it prints."""

import ast
import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from app_process import running_app
from launch import ROOT

MARK = "zinnober7391"
TOOLS = {"answer", "compare", "replay"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with running_app(tmp_path_factory.mktemp("app")) as app:
        yield app


def run_example(app, *command):
    env = os.environ | {"FUSESCOPE_URL": app.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_example_of_the_openai_client_runs(app):
    out = run_example(app, sys.executable, "assets/examples/openai_chat.py")
    for word in ("answer:", "cached:", "streamed:", "uploaded:", "searched:", "with the tool's result:", "deleted"):
        assert word in out, out


def test_the_example_of_gradio_client_runs(app):
    out = run_example(app, sys.executable, "assets/examples/gradio_endpoints.py")
    assert "answer:" in out and "compare:" in out and "'saecache'" in out and "'min'" in out


def test_the_example_of_curl_runs(app):
    out = run_example(app, "sh", "assets/examples/curl.sh")
    assert '"status":"ready"' in out and '"chat.completion"' in out and "data: [DONE]" in out and '"num_deleted":1' in out


def test_agents_find_three_tools_with_typed_arguments_and_can_call_them(app):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def talk():
        async with streamablehttp_client(f"{app.url}/gradio_api/mcp/") as (read, write, _), ClientSession(read, write) as client:
            await client.initialize()
            tools = (await client.list_tools()).tools
            answer = await client.call_tool("answer", {"question": "Who?", "passages": "Ada Quill lit the lamp.\n\nIt was in 1871."})
            wrong = await client.call_tool("replay", {"workload": "nonsense"})
            return tools, answer, wrong

    # In a thread of its own: the browser of other tests has a loop in this one.
    with ThreadPoolExecutor(1) as threads:
        tools, answer, wrong = threads.submit(asyncio.run, talk()).result()
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert len(tool.description) > 60 and all(field.get("type") for field in tool.inputSchema["properties"].values()), tool
    # Gradio writes a tool's result as Python does.
    result = ast.literal_eval(answer.content[0].text)
    assert not answer.isError and result["mode"] == "live" and result["num_prompt_tokens"] > 0
    assert wrong.isError and "known" in wrong.content[0].text and "Traceback" not in wrong.content[0].text


def test_the_page_is_served_as_before(app):
    assert "Fusescope" in httpx.get(app.url, trust_env=False).text
    info = httpx.get(f"{app.url}/gradio_api/info", trust_env=False).json()
    assert {name.strip("/") for name in info["named_endpoints"]} == TOOLS
    assert httpx.get(f"{app.url}/config", trust_env=False).status_code == 200
    assert httpx.get(f"{app.url}/gradio_api/healthz", trust_env=False).json()["status"] == "ready"


def test_metrics_count_what_was_asked(app):
    with httpx.Client(base_url=app.url, trust_env=False) as client:
        body = {"model": "fusescope", "messages": [{"role": "user", "content": "Who?"}], "max_tokens": 2, "documents": [{"text": "Ada."}]}
        assert client.post("/v1/chat/completions", json=body, timeout=60).status_code == 200
        text = client.get("/metrics").text
    assert 'fusescope_ttft_seconds_count{method="qcfuse"}' in text and "fusescope_prefix_capacity_blocks" in text
    assert "process_resident_memory_bytes" in text


def press(client: httpx.Client, elem_id: str, data: list[object]) -> dict[str, object]:
    """Returns what the page answers to a press of a button outside its queue."""
    config = client.get("/config").json()
    number = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == elem_id)
    event = next(event for event in config["dependencies"] if [number, "click"] in event["targets"])
    body = {"data": data, "fn_index": event["id"], "session_hash": f"page-{MARK}", "trigger_id": number}
    return client.post("/gradio_api/run/predict", json=body).json()


def test_what_visitors_write_is_in_no_log_and_leaves_no_file_behind(app):
    headers = {"X-Fusescope-Session": f"session-of-{MARK}-000"}
    with httpx.Client(base_url=app.url, headers=headers, timeout=60, trust_env=False) as client:
        ask = {"model": "fusescope", "messages": [{"role": "user", "content": f"Who is {MARK}?"}], "max_tokens": 2}
        for fields in (
            {"documents": [{"title": MARK, "text": f"{MARK} is a colour."}]},
            {"model": MARK},
            {"stop": [MARK], "n": 4},
            {MARK: 1},
        ):
            client.post("/v1/chat/completions", json=ask | fields)
        client.post("/v1/chat/completions", content=f"{{{MARK}".encode(), headers={"Content-Type": "application/json"})
        client.get(f"/v1/{MARK}"), client.get(f"/v1/documents/{MARK}")
        files = {"file": (f"../../{MARK}.txt", f"{MARK} is red. ".encode() * 50, "text/plain")}
        document = client.post("/v1/documents", files=files).json()
        assert document["filename"] == f"{MARK}.txt"
        client.post("/v1/documents", files={"file": (f"{MARK}.pdf", MARK.encode(), "application/pdf")})
        client.post("/gradio_api/call/answer", json={"data": [MARK, MARK, MARK, MARK, 3]})
        for _ in range(2):
            told = press(client, "chat-new-make", [None, f"{MARK}'s"])
        assert "error" not in told and len(told["data"]) == 5
        assert client.delete("/v1/documents").json()["num_deleted"] == 1
    log = app.log.read_text()
    assert MARK not in log and "Traceback" not in log
    left = [path for path in app.folder.rglob("*") if path.is_file() and MARK in path.name]
    held = [path for path in (app.folder / "gradio").rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]
    assert left == [] and held == []


def test_a_page_of_an_earlier_start_is_told_so_and_no_error_is_logged(app):
    with httpx.Client(base_url=app.url, trust_env=False) as client:
        joined = client.post("/gradio_api/queue/join", json={"data": [], "fn_index": 99_999, "session_hash": "old"})
        called = client.post("/gradio_api/call/nonsense", json={"data": []})
    assert joined.status_code == 404 and "load the page again" in joined.json()["detail"]
    assert called.status_code == 404 and "'nonsense'" in called.json()["detail"]
    assert "Traceback" not in app.log.read_text()
