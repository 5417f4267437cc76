"""Errors whose message is one sentence for the user: the value, the rule and the remedy."""


class EngineError(Exception):
    """Base of every error that is shown to the user as it stands."""


class BadRequest(EngineError):
    """A value of the request breaks a rule; the request was not started."""


class UnknownName(EngineError):
    """A method, scenario or model name that no registry knows; the message lists the known ones."""


class ModelUnavailable(EngineError):
    """A model could not be found, fetched or understood; the current one stays."""


class BackendUnavailable(EngineError):
    """A device or kernel set was asked for by name and cannot be had here."""


class StoreError(EngineError):
    """A chunk file could not be read whole; the caller recomputes the chunk."""


class BadRunFile(EngineError):
    """A file that is not a valid run of a known version."""


class BadResultsFile(EngineError):
    """A file that does not hold benchmark results of a known version."""


class BadDocument(EngineError):
    """A file that is not taken into the library: broken, mislabelled, unreadable, or past a limit."""


class LibraryUnavailable(EngineError):
    """The library's file cannot be read or written now: no room, no right, damaged, or held by another process."""


class Cancelled(EngineError):
    """The run was stopped by its owner between two layers."""


class QueueFull(EngineError):
    """As many requests wait for the engine as may; this one was not taken."""


class TimedOut(EngineError):
    """A request took more engine time than one may."""


class AccessDenied(EngineError):
    """The password or key is missing or wrong, or the session of a document is not named."""


class TooLarge(EngineError):
    """A request has more bytes than one may have."""


class QuotaExceeded(EngineError):
    """A visitor asked for more than is allowed in a while; `retry_after_s` is when the same request would pass."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
