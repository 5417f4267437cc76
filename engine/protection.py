"""What one process allows its visitors: who may come in, how much each may ask, how much may wait. Knows no protocol."""

from dataclasses import dataclass, field
from typing import Any

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Protection:
    """Limits of a process; 0 means no limit. Settings read them from the environment.

    Args:
        public: strangers come in, so that only listed models may be chosen, the prefix cache's policy stays, and documents need a
            session of their own.
        models: names a visitor may choose in public, the one in use always among them.
        password: of the page and key of the API; "" lets everyone in.
        requests_per_minute, tokens_per_hour, upload_mib_per_hour: of one session or key; ten times as much of one address.
        max_waiting: requests that may wait for the engine.
        max_request_mib: size of one HTTP request.
        timeout_s: engine time of one request, waiting not counted. replay_s: the same of one batch of replays, which need no model.
    """

    public: bool = False
    models: tuple[str, ...] = ()
    password: str = field(default="", repr=False)
    requests_per_minute: int = 0
    tokens_per_hour: int = 0
    upload_mib_per_hour: int = 0
    max_waiting: int = 64
    max_request_mib: int = 64
    timeout_s: float = 0.0
    replay_s: float = 0.0

    @classmethod
    def for_public(cls, **changed: Any) -> "Protection":
        """Returns the limits of a process that strangers use, with some of them changed."""
        quotas = {"requests_per_minute": 20, "tokens_per_hour": 200_000, "upload_mib_per_hour": 64}
        return cls(**{"public": True, **quotas, "max_waiting": 16, "timeout_s": 120.0, "replay_s": 300.0, **changed})
