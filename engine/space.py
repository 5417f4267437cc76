"""What Hugging Face Spaces tell a process about itself, and how it serves there unless its variables say otherwise."""

from collections.abc import Mapping

_SWITCHED_ON = ("1", "t", "true")


def on_space(env: Mapping[str, str]) -> bool:
    """Returns whether the process runs on a Space."""
    return bool(env.get("SPACE_ID")) or env.get("SYSTEM") == "spaces"


def on_zerogpu(env: Mapping[str, str]) -> bool:
    """Returns whether the Space is lent a GPU call by call."""
    return env.get("SPACES_ZERO_GPU", "").lower() in _SWITCHED_ON


def with_space_defaults(env: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment with what Gradio's own variables and a Space imply; a variable of ours that is set stays.

    On a Space strangers come in, from outside the container. On ZeroGPU the process that serves has no GPU, whatever is asked for.
    """
    names = {"HOST": env.get("GRADIO_SERVER_NAME", ""), "PORT": env.get("GRADIO_SERVER_PORT", "")}
    if on_space(env):
        names = {"HOST": names["HOST"] or "0.0.0.0", "PORT": names["PORT"], "FUSESCOPE_PUBLIC": "1"}
    found = {**names, **{name: value for name, value in env.items() if value or name not in names}}
    return {**found, "FUSESCOPE_DEVICE": "cpu"} if on_zerogpu(env) else found
