"""Who sends a request: whose documents it may see, and against whose quota it counts."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from engine.errors import AccessDenied
from engine.protection import Protection

SESSION_HEADER = "X-Fusescope-Session"
MIN_SECRET_CHARS = 16


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request.

    Args:
        owner: opaque name under which documents are kept, None where the sender did not say who it is.
        address: where the request came from.
    """

    owner: str | None
    address: str

    @property
    def keeper(self) -> str:
        """Returns the owner. Raises AccessDenied where there is none."""
        if self.owner is None:
            raise AccessDenied(
                f"Documents need a session of your own: send the header {SESSION_HEADER} with a random text of at least "
                f"{MIN_SECRET_CHARS} characters, the same with every request."
            )
        return self.owner


def identify(headers: Mapping[str, str], address: str, protection: Protection) -> Client:
    """Returns the sender of a request with these headers. Raises AccessDenied where the key is not the password.

    Owners are hashes, so that a session or key is nowhere stored and no client can name a visitor of the page.
    Where strangers come in, a short secret names nobody: it could be guessed, or is what every example says.
    """
    key = _bearer(headers)
    if protection.password and not same_text(key, protection.password):
        raise AccessDenied("The API key is missing or wrong; send the server's password as Authorization: Bearer <password>.")
    session = headers.get(SESSION_HEADER.lower(), "").strip()
    secret = session if session or protection.password else key
    shared = protection.public or bool(protection.password)
    if shared and len(secret) < MIN_SECRET_CHARS:
        return Client(None, address)
    return Client("api-" + blake2b(secret.encode(), digest_size=16).hexdigest(), address)


def same_text(given: str, expected: str) -> bool:
    """Whether two texts are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _bearer(headers: Mapping[str, str]) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
