"""The one error of this package."""


class SpaceProblem(ValueError):
    """A Space cannot be pushed as it is; the message is one sentence with the value, the rule and the remedy."""
