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


class Cancelled(EngineError):
    """The run was stopped by its owner between two layers."""
