"""Several users of one machine run the app: nobody's temporary files are in another's way."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from viz.panels.own_folder import own_folder
from viz.panels.run_download import write_download

ROOT = Path(__file__).resolve().parents[2]


def test_a_download_is_written_where_another_users_folder_has_the_plain_name(tmp_path, monkeypatch):
    # A file stands for a folder that is another user's: this process may be root, who may write anywhere.
    for name in ("fusescope-downloads", "gradio"):
        (tmp_path / name).write_text("another user's")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = Path(write_download("run.json", b"{}"))
    assert path.read_bytes() == b"{}" and path.is_relative_to(tmp_path / f"fusescope-{os.getuid()}")


def test_nobody_else_reads_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert own_folder("a") == own_folder("b").with_name("a")
    assert stat.S_IMODE(own_folder("a").parent.stat().st_mode) == 0o700


def test_a_folder_that_somebody_else_put_there_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"fusescope-{os.getuid()}").symlink_to(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="somebody else"):
        own_folder("a")
    (tmp_path / f"fusescope-{os.getuid()}").unlink()
    own_folder("a")
    own = os.getuid()
    (tmp_path / f"fusescope-{own + 1}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(PermissionError, match="somebody else"):
        own_folder("a")


def test_gradio_is_given_a_folder_of_its_users_own_unless_one_is_named(tmp_path):
    code = "import app, os; app._keep_files_apart(); print(os.environ['GRADIO_TEMP_DIR'])"
    plain = {name: value for name, value in os.environ.items() if name != "GRADIO_TEMP_DIR"} | {"TMPDIR": str(tmp_path)}
    for env, folder in ((plain, tmp_path / f"fusescope-{os.getuid()}" / "gradio"), (plain | {"GRADIO_TEMP_DIR": "/named"}, "/named")):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(folder)
