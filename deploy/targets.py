"""The three Spaces: the app on a free machine, the app on ZeroGPU, and the recorded runs as a static page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MODEL: Final = "HuggingFaceTB/SmolLM2-135M-Instruct"
_MODEL_FILES: Final = "config.json,generation_config.json,model.safetensors,special_tokens_map.json,tokenizer.json,tokenizer_config.json"
_LOOK: Final = {"emoji": "🧩", "colorFrom": "blue", "colorTo": "yellow", "license": "apache-2.0", "pinned": False}
_TAGS: Final = ("kv-cache", "rag", "llm-serving", "prefix-caching", "visualization")
# The newest that gradio's MCP server, which the hub installs, goes with.
_CHOSEN: Final = {"pydantic": "2.12.5"}
_APP: Final[Mapping[str, Any]] = {
    "app_file": "app.py",
    "header": "mini",
    "fullWidth": True,
    "models": [MODEL],
    "tags": [*_TAGS, "mcp-server"],
    "preload_from_hub": [f"{MODEL} {_MODEL_FILES}"],
    "startup_duration_timeout": "30m",
    "disable_embedding": False,
}


@dataclass(frozen=True, slots=True)
class Target:
    """One Space.

    Args:
        folder: below the folder of builds.
        card: front matter; a Space with the Gradio SDK gets its sdk_version from the requirements.
        texts: files of `deploy/readme` that make its README.
        chosen: versions that this Space's machine asks for instead of the installed ones.
        first: lines that are installed before the requirements; () for none.
    """

    folder: str
    card: Mapping[str, Any]
    texts: tuple[str, ...]
    chosen: Mapping[str, str] = field(default_factory=dict)
    first: tuple[str, ...] = ()

    @property
    def is_app(self) -> bool:
        """Whether the app runs there, and not only its recorded runs."""
        return self.card["sdk"] == "gradio"


def targets(torch_version: str) -> tuple[Target, ...]:
    """Returns the three Spaces.

    Args:
        torch_version: that the app was tested with, without the name of its build.
    """
    return (
        Target(
            folder="space",
            card={
                "title": "Fusescope",
                **_LOOK,
                "sdk": "gradio",
                "python_version": "3.11",
                "short_description": "See which tokens QCFuse recomputes, why, and what it saves",
                "suggested_hardware": "cpu-basic",
                **_APP,
            },
            texts=("about.md", "space.md", "settings.md"),
            chosen=_CHOSEN,
            # The plain name's build brings CUDA. A requirement of the same version is then met by this build.
            first=("--extra-index-url https://download.pytorch.org/whl/cpu", f"torch=={torch_version}+cpu"),
        ),
        Target(
            folder="space-zerogpu",
            card={
                "title": "Fusescope on ZeroGPU",
                **_LOOK,
                "sdk": "gradio",
                # ZeroGPU serves 3.10.13 and 3.12.12, and of torch 2.8.0, 2.9.1, 2.10.0 and 2.11.0.
                "python_version": "3.12.12",
                "short_description": "QCFuse on a lent GPU: what is recomputed, and why",
                "suggested_hardware": "zero-a10g",
                **_APP,
            },
            texts=("about.md", "zerogpu.md", "settings.md"),
            chosen={**_CHOSEN, "torch": "2.11.0"},
        ),
        Target(
            folder="space-static",
            card={
                "title": "Fusescope: recorded runs",
                **_LOOK,
                "sdk": "static",
                "app_file": "index.html",
                "short_description": "QCFuse and SAECache as films, from recorded runs",
                "tags": list(_TAGS),
            },
            texts=("static.md",),
        ),
    )
