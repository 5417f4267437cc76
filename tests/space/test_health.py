"""The daily check tells a Space that serves from one that does not."""

import http.server
import json
import threading
from contextlib import contextmanager

import pytest

from deploy.health import main, problem, settled

PAGE = b"<title>Fusescope</title>"


@contextmanager
def serving(answers):
    """Yields the address of a server with these answers by path: (status, body), or a list of them, one after the other."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            found = answers.get(self.path, (404, b"<html>no</html>"))
            status, body = (found.pop(0) if len(found) > 1 else found[0]) if isinstance(found, list) else found
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "answers",
    [
        {"/": (200, PAGE), "/healthz": (200, {"status": "ready"})},
        {"/": (200, PAGE), "/gradio_api/healthz": (200, {"status": "ready"})},
        {"/": (200, PAGE), "/site.json": (200, {"runs": [{"id": "a"}]})},
    ],
    ids=["app", "app behind node", "static page"],
)
def test_a_space_that_serves_has_no_problem(answers, capsys):
    with serving(answers) as url:
        assert problem(url) is None
        assert main([url]) == 0 and "serves." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "answers 404"),
        ({"/": (200, b"<html>Building</html>")}, "not with the page"),
        ({"/": (200, PAGE)}, "neither"),
        ({"/": (200, PAGE), "/healthz": (503, {"status": "failed", "message": "The model is gone."})}, "failed: The model is gone."),
    ],
)
def test_a_space_that_does_not_serve_has_one_sentence(answers, words):
    with serving(answers) as url:
        assert words in problem(url)


def test_an_address_that_nobody_serves_is_a_problem():
    with serving({}) as url:
        pass
    assert "not with the page" in problem(url)


def test_a_space_that_is_waking_is_waited_for_and_one_that_stays_away_is_not():
    waking = {"/": [(503, b"starting"), (200, PAGE)], "/healthz": [(503, {"status": "loading"}), (200, {"status": "ready"})]}
    with serving(waking) as url:
        assert settled(url, patience_s=30, pause_s=0.01) is None
    with serving({"/": (503, b"no")}) as url:
        assert "answers 503" in settled(url, patience_s=0.05, pause_s=0.01)


def test_the_check_needs_an_address(capsys):
    assert main([]) == 2 and "no address" in capsys.readouterr().err
