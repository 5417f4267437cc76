"""Serves a folder on this machine: python tests/player/serve_folder.py <port> <folder>"""

import functools
import http.server
import sys


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing: a test's output is for what fails."""


if __name__ == "__main__":
    handler = functools.partial(_Quiet, directory=sys.argv[2])
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
