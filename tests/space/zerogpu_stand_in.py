"""Starts the app as on ZeroGPU where there is none: the hub's package `spaces` with its forks and queues is real, its lender is not.

As a program, in the folder of a Space: python zerogpu_stand_in.py. Torch's build for processors lacks what the package looks at when it is
imported, and the forked process has no GPU to set up, so that it computes on the processor; all else is as it runs on the hub.
"""

import http.server
import json
import os
import runpy
import sys
import threading
from typing import Any

import torch

LENT = {"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": "stand-in"}


class Lender(http.server.BaseHTTPRequestHandler):
    """Answers as the service does that schedules GPUs: yes to everything."""

    def do_POST(self) -> None:
        """Lends, allows, and takes back."""
        body = json.dumps(LENT if self.path.startswith("/schedule") else {}).encode()
        print("lender:", self.path.split("?")[0], flush=True)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Says nothing more."""


def is_in_bad_fork() -> bool:
    """Returns what torch says where CUDA was never begun."""
    return False


def stand_in() -> None:
    """Imports `spaces` as on ZeroGPU, with what a processor cannot do left out."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(SPACES_ZERO_GPU="true", SPACES_ZERO_DEVICE_API_URL=f"http://127.0.0.1:{server.server_port}")
    if not hasattr(torch._C, "_cuda_init"):
        torch._C._cuda_init = lambda: None
        torch.version.cuda, torch.cuda._is_in_bad_fork = "12.8", is_in_bad_fork
    import spaces  # noqa: F401
    from spaces.zero import torch as of_spaces

    of_spaces.init, of_spaces.move = lambda uuid: None, lambda callback=None: None


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    stand_in()
    runpy.run_path("app.py", run_name="__main__")
