"""One SGLang server over HTTP: what it serves, and answers to prompts of token ids."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from engine.errors import BackendUnavailable, Cancelled, ModelUnavailable
from engine.serving.sglang_answer import Asked, Pieces, Streamed
from engine.serving.sglang_lane import URL_VARIABLE

LAUNCH = "python -m engine.serving.sglang.launch"
_CONNECT_S, _TIMEOUT_S = 5.0, 300.0
# How often a wait for the server looks whether its owner still waits.
_LOOK_S = 0.1


class ServerInfo(NamedTuple):
    """What a server serves and on what.

    Args:
        max_context: tokens of a prompt with its answer.
        fusion: what the plugin says of itself: model, revision, kernels and so on.
        policy: name of the prefix cache's eviction policy.
    """

    tokenizer: str
    version: str
    attention_backend: str
    max_context: int
    fusion: Mapping[str, Any]
    policy: str


class SGLangServer:
    """A running server; used by one thread at a time. `timeout_s` bounds the wait for each piece of an answer."""

    def __init__(self, url: str, timeout_s: float = _TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        # No proxy of the environment: prompts go to the server that is named, and nowhere else.
        options = {"base_url": self.url, "timeout": httpx.Timeout(timeout_s, connect=_CONNECT_S), "trust_env": False}
        self._http, self._streams, self._loop = httpx.Client(**options), httpx.AsyncClient(**options), asyncio.Runner()
        # Whoever asks may have an event loop of their own in their thread.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="sglang-stream")

    @property
    def host(self) -> str:
        """Returns host and port, as people are told where it is."""
        return urlsplit(self.url).netloc

    def info(self) -> ServerInfo:
        """Returns what the server serves. Raises BackendUnavailable where nobody answers or no server with the plugin does."""
        with self._errors():
            told = self._get("/server_info")
            fusion = self._state(told).get("fusion") or {"hindrance": "it was started without --attention-backend qcfuse"}
            if fusion["hindrance"]:
                raise BackendUnavailable(
                    f"The SGLang server at {self.host} fuses nothing: {str(fusion['hindrance']).rstrip('.')}; start it again with {LAUNCH}."
                )
            context = told.get("context_length") or told["max_total_num_tokens"]
            places = (str(told[name]) for name in ("tokenizer_path", "version", "attention_backend"))
            return ServerInfo(*places, max_context=int(context), fusion=fusion, policy=str(told.get("radix_eviction_policy", "lru")))

    def policy(self) -> Mapping[str, Any] | None:
        """Returns the live figures of the plugin's eviction policy, None where another policy runs. Raises BackendUnavailable."""
        with self._errors():
            found: Mapping[str, Any] | None = self._state(self._get("/server_info")).get("policy")
            return found

    def tokenizer(self) -> Any:
        """Returns the tokenizer of the served model. Raises ModelUnavailable where it is not on this machine."""
        from transformers import AutoTokenizer

        name = self.info().tokenizer
        try:
            return AutoTokenizer.from_pretrained(name, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"The tokenizer of the served model {name!r} is not on this machine; fetch that model first.") from error

    def stream(
        self, asked: Asked, cancelled: Callable[[], bool] = lambda: False, on_text: Callable[[str], None] = lambda text: None
    ) -> Streamed:
        """Returns the answer to a prompt. Raises BackendUnavailable, Cancelled and what `cancelled` raises.

        Args:
            on_text: called with the answer so far as it grows.
        """
        with self._errors():
            return self._worker.submit(lambda: self._loop.run(self._answer(asked, cancelled, on_text))).result()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()
        self._worker.submit(lambda: self._loop.run(self._streams.aclose())).result()
        self._worker.submit(self._loop.close).result()
        self._worker.shutdown()

    async def _answer(self, asked: Asked, cancelled: Callable[[], bool], on_text: Callable[[str], None]) -> Streamed:
        """Returns the answer, and lets go of a server that says nothing as soon as nobody waits for it any more."""
        reading = asyncio.ensure_future(self._read(asked, on_text))
        try:
            while not reading.done():
                if cancelled():
                    raise Cancelled("Stopped while the server wrote its answer.")
                await asyncio.wait({reading}, timeout=_LOOK_S)
            return reading.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self, asked: Asked, on_text: Callable[[str], None]) -> Streamed:
        pieces = Pieces(on_text)
        async with self._streams.stream("POST", "/generate", json=asked.body()) as response:
            if response.status_code != 200:
                reason = _detail(response.status_code, await response.aread())
                raise BackendUnavailable(
                    f"The SGLang server at {self.host} refused the request ({reason}); shorten it or see the server's log."
                )
            async for line in response.aiter_lines():
                pieces.add(line)
        whole = pieces.whole()
        if whole is None:
            raise BackendUnavailable(f"The SGLang server at {self.host} ended in the middle of its answer; see its log and start it again.")
        return whole

    def _state(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what the plugin adds to a server's state. Raises BackendUnavailable where it is not loaded."""
        states: Any = told.get("internal_states") or [{}]
        found: Mapping[str, Any] | None = states[0].get("fusescope")
        if found is None:
            raise BackendUnavailable(f"{self.host} is not an SGLang server with this project's plugin; start one with {LAUNCH}.")
        return found

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._http.get(path)
        if answer.status_code != 200:
            raise BackendUnavailable(
                f"The server at {self.host} answers {answer.status_code} on {path}, as no SGLang server does; check {URL_VARIABLE}."
            )
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns what a connection and a server's words may raise into BackendUnavailable."""
        try:
            yield
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise BackendUnavailable(
                f"The SGLang server at {self.host} does not answer ({reason}); start it again, or unset {URL_VARIABLE}."
            ) from error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BackendUnavailable(
                f"The server at {self.host} answers, but not as an SGLang server does ({error!r}); check {URL_VARIABLE}."
            ) from error


def _detail(status: int, content: bytes) -> str:
    try:
        return str(httpx.Response(status, content=content).json()["error"]["message"])[:300]
    except (LookupError, TypeError, ValueError):
        return f"it answers {status}"
