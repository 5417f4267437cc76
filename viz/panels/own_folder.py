"""Where files lie that are on their way to or from a visitor. Knows nothing of Gradio."""

import errno
import os
import tempfile
from pathlib import Path


def own_folder(name: str) -> Path:
    """Returns a folder below this user's own in the system's temporary one; other users of the machine have others.

    Under one name for all, the first user's would be nobody else's to write to. Raises OSError.
    """
    own = Path(tempfile.gettempdir()) / f"fusescope-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    # The name can be guessed, so that somebody else may have been there first.
    if own.is_symlink() or own.stat().st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "it belongs to somebody else", str(own))
    return own / name
