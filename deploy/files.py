"""Which files of the checkout make a Space, and what may not be among them."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from deploy.problem import SpaceProblem

ROOTS: Final = ("app.py", "LICENSE", "assets", "datasets", "engine", "kernels", "viz")
# What README shows and how to call the app from outside; none of it is shown or run by the app.
LEFT_OUT: Final = ("assets/examples/", "assets/screenshots/", "viz/player/screenshots.py", "viz/player/shooting.py")
# The hub refuses a push with a larger file that is not kept by its large-file storage.
MAX_BYTES: Final = 10 * 2**20
_SECRET_NAMES: Final = re.compile(
    r"\.env(\..*)?|\.netrc|\.npmrc|\.pypirc|id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|key|p12|pfx)|.*credentials.*", re.I
)
_SECRET_TEXTS: Final = re.compile(
    rb"\bhf_[A-Za-z0-9]{30,}|\bgh[pousr]_[A-Za-z0-9]{36}|\bAKIA[0-9A-Z]{16}\b|\bsk-[A-Za-z0-9_-]{32,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


def files_to_push(root: Path) -> list[str]:
    """Returns the paths from the root of what git knows or would add, so that nothing ignored is among them. Raises SpaceProblem."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *ROOTS]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SpaceProblem(f"git cannot list the files of {root} ({error}); assemble the Space in a checkout of the project.") from error
    names = [name for name in done.stdout.decode().split("\0") if name and not name.startswith(LEFT_OUT)]
    # A file that was deleted and not committed yet is still listed.
    return sorted(name for name in names if (root / name).exists() or (root / name).is_symlink())


def make_room(folder: Path) -> None:
    """Empties a folder that holds an older Space; any other folder with something in it is left alone, by an error."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SpaceProblem(f"{folder} is not a folder; choose another place.")
    if folder.is_dir() and any(folder.iterdir()):
        readme = folder / "README.md"
        if not (readme.is_file() and readme.read_text(encoding="utf-8").startswith("---\n")):
            raise SpaceProblem(f"{folder} is not empty and not a Space of ours; choose another place.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def copy_files(root: Path, names: Iterable[str], folder: Path) -> None:
    """Copies the files with their folders. Raises SpaceProblem for a link, which would point at nothing on the hub."""
    for name in names:
        source, target = root / name, folder / name
        if source.is_symlink():
            raise SpaceProblem(f"{name} is a link to {source.readlink()}; a Space holds plain files, so put the file itself there.")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def mark_binaries(folder: Path) -> None:
    """Writes .gitattributes, so that a push by plain git keeps binary files in large-file storage, as the hub asks."""
    kinds = sorted({path.suffix for path in _files(folder) if b"\0" in path.read_bytes()[:8192] and path.suffix})
    (folder / ".gitattributes").write_text("".join(f"*{kind} filter=lfs diff=lfs merge=lfs -text\n" for kind in kinds))


def check_files(folder: Path, expected: Iterable[str] | None = None) -> tuple[int, int]:
    """Returns the number of files and of their bytes. Raises SpaceProblem.

    Args:
        expected: paths that may be there; None where the folder was just written whole.
    """
    files, large = _files(folder), []
    for path in files:
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise SpaceProblem(f"{path} is a link to {path.readlink()}; a Space holds plain files, so put the file itself there.")
        if _SECRET_NAMES.fullmatch(path.name):
            raise SpaceProblem(f"{path} looks by its name like a secret; keep it out of the Space and set it as a secret in its settings.")
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            large.append(f"{name} ({len(data) / 2**20:.1f} MiB)")
            continue
        if found := _SECRET_TEXTS.search(data):
            # The text itself is not repeated: what prints this may be kept.
            line = data.count(b"\n", 0, found.start()) + 1
            raise SpaceProblem(
                f"{path}, line {line}, holds what looks like a key; take it out and set it as a secret in the Space's settings."
            )
    if large:
        raise SpaceProblem(
            f"{folder} holds {', '.join(large)}, above the {MAX_BYTES >> 20} MiB that the hub takes by plain git; leave them out."
        )
    if expected is not None and (extra := sorted({path.relative_to(folder).as_posix() for path in files} - set(expected))):
        raise SpaceProblem(f"{folder} holds {extra[0]}, which git ignores or does not know; assemble the Space anew with `make space`.")
    return len(files), sum(path.stat().st_size for path in files)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
