"""Starts and stops real SGLang servers with the plugin on the CPU, serving tiny random models."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

from engine.model.tiny import byte_tokenizer, tiny_hf_model
from engine.serving.sglang.launch import command, environment

START_LIMIT_S = 480


class TinyModels:
    """Tiny models saved where a server can load them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, family: str) -> Path:
        folder = self._folder / family
        if not folder.is_dir():
            tiny_hf_model(family).save_pretrained(folder)
            byte_tokenizer().save_pretrained(folder)
        return folder


class Server:
    """One running server; `log` is all that it has written."""

    def __init__(self, model: Path, log: Path, *arguments: str, cache: Path | None = None, **env: str) -> None:
        self.port, self.log = _free_port(), log
        self.url = f"http://127.0.0.1:{self.port}"
        argv = command(["--model-path", str(model), "--port", str(self.port), "--skip-server-warmup", *arguments], on_cpu=True)
        own = {"OMP_NUM_THREADS": "1", "FUSESCOPE_CACHE": str(cache or log.parent), **env}
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                argv, env=environment(os.environ, on_cpu=True) | own, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.http = httpx.Client(base_url=self.url, timeout=120.0)
        self._wait()

    def generate(self, ids, max_new_tokens=1, custom=None, **more):
        """Returns the server's answer to one prompt of ids, or the answers to a batch of them."""
        is_batch = bool(ids) and isinstance(ids[0], list)
        params = {"temperature": 0.0, "max_new_tokens": max_new_tokens, "ignore_eos": True}
        if is_batch:
            sampling = [params | ({"custom_params": c} if c else {}) for c in (custom or [None] * len(ids))]
        else:
            sampling = params | ({"custom_params": custom} if custom else {})
        answer = self.http.post("/generate", json={"input_ids": ids, "sampling_params": sampling, **more})
        answer.raise_for_status()
        return answer.json()

    def state(self) -> dict:
        """Returns the live figures of the server's eviction policy."""
        return self.http.get("/server_info").raise_for_status().json()["internal_states"][0]["fusescope"]["policy"]

    def stop(self) -> None:
        """Ends the server and all its processes."""
        self.http.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(15)

    def _wait(self) -> None:
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                if self.http.get("/health").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.3)
        tail = self.log.read_text(errors="replace")[-4000:]
        self.stop()
        raise AssertionError(f"the server did not start: {tail}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
