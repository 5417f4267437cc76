"""Writes what is shown to a file where Gradio can hand it out. Knows nothing of Gradio."""

import contextlib
import hashlib
import re
import shutil
import time
from pathlib import Path

from engine.types import Run
from viz.panels.contract import RunFiles
from viz.panels.own_folder import own_folder

KEEP_S = 3600.0
SUFFIX = ".run.json.gz"


def write_run(files: RunFiles, run: Run | None, folder: Path | None = None) -> str | None:
    """Returns the path of the run's file, named by scenario and time."""
    return None if run is None else write_download(file_name(run), files.dump_run(run), folder)


def write_download(name: str, data: bytes, folder: Path | None = None) -> str:
    """Returns the path of a new file called `name`; files older than an hour go."""
    folder = folder or own_folder("downloads")
    target = folder / hashlib.sha256(data).hexdigest()[:16] / name
    folder.mkdir(parents=True, exist_ok=True)
    _prune(folder, time.time() - KEEP_S)
    target.parent.mkdir(exist_ok=True)
    part = target.with_name(f"{target.name}.{time.monotonic_ns()}.part")
    part.write_bytes(data)
    part.replace(target)
    return str(target)


def file_name(run: Run) -> str:
    """Returns 'fusescope-<scenario>-<time><suffix>' with plain characters only."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{run.scenario or 'run'}-{run.provenance.created[:16]}").strip("-")
    return f"fusescope-{words[:80]}{SUFFIX}"


def _prune(folder: Path, before: float) -> None:
    for old in folder.iterdir():
        # Another visitor's call may remove the same folder at the same time.
        with contextlib.suppress(FileNotFoundError):
            if old.stat().st_mtime < before:
                shutil.rmtree(old, ignore_errors=True)
