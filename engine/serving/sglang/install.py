"""Lets an environment's SGLang find the plugin for good: `python -m engine.serving.sglang.install` writes one .pth file.

The file names this checkout and the folder with the entry point, as an editable installation does; `--remove` takes it away.
"""

import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from engine.serving.sglang.launch import HERE, ROOT

NAME = "fusescope-sglang.pth"


def install(site_packages: Path) -> Path:
    """Returns the file that it wrote into a folder of packages. Raises OSError where that cannot be written to."""
    path = site_packages / NAME
    path.write_text(f"{ROOT}\n{HERE / 'path'}\n")
    return path


def remove(site_packages: Path) -> None:
    """Takes the file away; harmless where it is not there."""
    (site_packages / NAME).unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> None:
    """Installs into or removes from the environment that runs it."""
    site_packages = Path(sysconfig.get_paths()["purelib"])
    if "--remove" in arguments:
        remove(site_packages)
        print(f"{site_packages / NAME} is gone.")
    else:
        print(f"{install(site_packages)} lets SGLang find the plugin in {ROOT}.")


if __name__ == "__main__":
    main(sys.argv[1:])
