"""What the clients of a soak send: chats, uploads, cancelled streams and replays, drawn by a seed. Each knows what its answer should be.

Speaks HTTP only: it sees the server as any client does.
"""

import contextlib
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

SESSION_HEADER = "X-Fusescope-Session"
KINDS = ("chat", "upload", "cancel", "replay")
# Out of a hundred requests.
MIX = {"chat": 58, "upload": 20, "cancel": 17, "replay": 5}
QUOTA_STATUSES = (429, 503)
PLACES = ("Orsund", "Vell", "Merrow Point", "Tarn", "Quillhaven", "Esk")
PEOPLE = ("Ilka Brandt", "Ada Quill", "Tomas Rey", "Nils Okkel", "Mara Voss", "Jon Hale")
THINGS = ("tidal gate", "lighthouse", "grain mill", "clock tower", "rope bridge", "salt works")


@dataclass(frozen=True, slots=True)
class Work:
    """One request to send: its kind, a name under which its answer is always the same, and what it consists of."""

    kind: str
    name: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a request.

    Args:
        answer: to be compared with the one given alone; None where there is nothing to compare.
        wait_s: until its turn came, as the server says; None where it doesn't.
        is_quota: whether it was turned away by a limit. error: what went wrong otherwise, None if nothing did.
    """

    work: Work
    elapsed_s: float
    answer: object = None
    wait_s: float | None = None
    is_quota: bool = False
    error: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


class Unexpected(Exception):
    """The server answered what it should not have."""


class TurnedAway(Exception):
    """A limit of the server; `after_s` is how long it asks to wait."""

    def __init__(self, after_s: float) -> None:
        super().__init__()
        self.after_s = after_s


def chats(seed: int, num: int = 10) -> list[Work]:
    """Returns different chats: by several methods, with and without passages, a first turn or a second one."""
    draw = random.Random(seed)
    return [Work("chat", f"chat {i}", _chat(draw, i)) for i in range(num)]


def plan(seed: int, num: int, known: Sequence[Work]) -> list[Work]:
    """Returns `num` requests in the proportions of MIX; chats and what is cancelled are among the known ones."""
    draw, work = random.Random(seed + 1), []
    for i in range(num):
        kind = draw.choices(KINDS, [MIX[kind] for kind in KINDS])[0]
        if kind in ("chat", "cancel"):
            chosen = draw.choice(known)
            work.append(chosen if kind == "chat" else Work("cancel", chosen.name, chosen.fields | {"pieces": draw.randrange(3)}))
        elif kind == "upload":
            work.append(Work("upload", f"upload {i}", {"text": _document(draw, i), "word": f"marker{seed}x{i}"}))
        else:
            work.append(replay_work())
    return work


def replay_work() -> Work:
    """Returns a replay of a generated load."""
    return Work("replay", "replay", {"data": ["balanced", "saecache", "5 %", 0]})


def perform(work: Work, client: httpx.Client) -> Done:
    """Sends a request, reads all of its answer and says what became of it. Raises nothing that a server can cause."""
    begun = time.monotonic()
    try:
        found = _PERFORM[work.kind](work, client)
        return Done(work, time.monotonic() - begun, **found)
    except TurnedAway as away:
        time.sleep(min(away.after_s, 1.0))
        return Done(work, time.monotonic() - begun, is_quota=True)
    except (Unexpected, httpx.HTTPError, KeyError, IndexError, ValueError) as error:
        return Done(work, time.monotonic() - begun, error=f"{work.kind}: {type(error).__name__}: {error}"[:300])


def _performed_chat(work: Work, client: httpx.Client) -> dict[str, Any]:
    body = _checked(client.post("/v1/chat/completions", json=work.fields)).json()
    extras = body["fusescope"]
    text = body["choices"][0]["message"]["content"]
    return {"answer": text, "wait_s": extras["queue_wait_s"], "provenance": extras["provenance"]}


def _performed_cancel(work: Work, client: httpx.Client) -> dict[str, Any]:
    fields = {name: value for name, value in work.fields.items() if name != "pieces"} | {"stream": True}
    with client.stream("POST", "/v1/chat/completions", json=fields) as response:
        if response.status_code != 200:
            response.read()
        _checked(response)
        with contextlib.closing(response.iter_lines()) as lines:
            for _ in range(work.fields["pieces"] + 1):
                next(lines, None)
    return {}


def _performed_upload(work: Work, client: httpx.Client) -> dict[str, Any]:
    """A document of this request alone: what is found must be its text, and it must be gone afterwards."""
    text, word = work.fields["text"], work.fields["word"]
    data = f"{text} The word is {word}.".encode()
    document = _checked(client.post("/v1/documents", files={"file": (f"{word}.txt", data, "text/plain")})).json()
    found = _checked(client.post("/v1/documents/search", json={"query": word, "num": 1, "documents": [document["id"]]})).json()["data"]
    if len(found) != 1 or word not in found[0]["text"]:
        raise Unexpected("the uploaded text was not found")
    _checked(client.delete(f"/v1/documents/{document['id']}"))
    if client.get(f"/v1/documents/{document['id']}").status_code not in (404, *QUOTA_STATUSES):
        raise Unexpected("the deleted document is still there")
    return {}


def _performed_replay(work: Work, client: httpx.Client) -> dict[str, Any]:
    event = _checked(client.post("/gradio_api/call/replay", json={"data": work.fields["data"]})).json()["event_id"]
    lines = _checked(client.get(f"/gradio_api/call/replay/{event}")).text.split("\n")
    last = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")][-1]
    if "event: error" in lines:
        raise Unexpected(last)
    return {"answer": json.loads(last)[0]["policies"]}


_PERFORM: dict[str, Callable[[Work, httpx.Client], dict[str, Any]]] = {
    "chat": _performed_chat,
    "cancel": _performed_cancel,
    "upload": _performed_upload,
    "replay": _performed_replay,
}


def _checked(response: httpx.Response) -> httpx.Response:
    """Returns a response that is good. Raises TurnedAway, Unexpected."""
    if response.status_code in QUOTA_STATUSES:
        raise TurnedAway(float(response.headers.get("retry-after", "1")))
    if response.status_code != 200:
        raise Unexpected(f"{response.status_code} {response.text[:150]}")
    return response


def _chat(draw: random.Random, index: int) -> dict[str, Any]:
    thing, place, person = draw.choice(THINGS), draw.choice(PLACES), draw.choice(PEOPLE)
    first = {"role": "user", "content": f"Who built the {thing} of {place}?"}
    second = [{"role": "assistant", "content": f"{person} did."}, {"role": "user", "content": f"And when was the {thing} finished?"}]
    passages = [{"id": f"p{index}-{i}", "title": f"Note {i}", "text": _document(draw, i)} for i in range((index + index // 4) % 4)]
    method = ("qcfuse", "full", "reuse", "epic")[index % 4]
    return {
        "model": "fusescope",
        "messages": [first, *second] if index % 3 == 2 else [first],
        "max_tokens": 8 + 4 * (index % 3),
        "documents": passages,
        "fusion": {"method": method, "ratio": 0.3},
    }


def _document(draw: random.Random, index: int) -> str:
    sentences = [
        f"The {draw.choice(THINGS)} of {draw.choice(PLACES)} was built by {draw.choice(PEOPLE)} in {draw.randrange(1700, 1990)}."
        for _ in range(6)
    ]
    return f"Note {index}. " + " ".join(sentences)


def new_session(seed: int, number: int) -> dict[str, str]:
    """Returns the headers of one client."""
    return {SESSION_HEADER: f"soak-session-{seed:06d}-{number:06d}"}
