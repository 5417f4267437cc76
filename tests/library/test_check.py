"""`python -m engine.check`: clean where all is well, and every kind of damage has its sentence."""

import json
import sqlite3
import subprocess
import sys

import pytest
from library_samples import TEXT, make_text, open_library
from worlds import lighthouse, tiny_runtime

from engine.check import check, main
from engine.library.library import FILE_NAME
from engine.library.parse.sandbox import ROOT

ME = "visitor-1"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A cache folder with a library and stored KV."""
    folder = tmp_path_factory.mktemp("world")
    library = open_library(folder / "library")
    library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    library.add(ME, "Lamps", "note.txt", make_text(1, 200).encode())
    library.close()
    runtime = tiny_runtime(folder)
    runtime.prepare(lighthouse())
    return folder


@pytest.fixture
def folder(world, tmp_path):
    """A copy of the world to damage."""
    import shutil

    shutil.copytree(world, tmp_path / "copy")
    return tmp_path / "copy"


def execute(folder, *statements: str) -> None:
    db = sqlite3.connect(folder / "library" / FILE_NAME, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_a_sound_folder_is_clean(folder, capsys):
    report = check(folder)
    assert report.is_clean and report.num_kv_files >= 4 and report.num_documents > 2
    assert main([str(folder)]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["clean"] is True and told["num_chunks"] == report.num_chunks and told["problems"] == []


def test_an_empty_folder_is_clean(tmp_path):
    assert check(tmp_path).is_clean and check(tmp_path / "nothing").num_kv_files == 0


def table_of(folder) -> str:
    db = sqlite3.connect(folder / "library" / FILE_NAME)
    (number,) = db.execute("SELECT id FROM libraries WHERE name = 'Lamps'").fetchone()
    db.close()
    return f"text_{number}"


@pytest.mark.parametrize(
    "statement, told",
    [
        ("DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})", "lacks 1 chunks"),
        ("INSERT INTO {table} (rowid, title, body) VALUES (99999, '', 'stray')", "has 1 rows without a chunk"),
        ("UPDATE {table}_content SET c1 = 'other words' WHERE id = (SELECT max(id) FROM {table}_content)", "does not hold the words"),
        ("DROP TABLE {table}", "has no index of words"),
        ("CREATE VIRTUAL TABLE text_777 USING fts5(title, body)", "text_777 belongs to no library"),
        ("DELETE FROM documents WHERE name = 'lamp.txt'", "refers to a missing row"),
        ("UPDATE chunks SET text = 'changed' WHERE chunk_id = 'harbour-museum:p01'", "harbour-museum:p01 is not what was stored"),
        ("UPDATE chunks SET ordinal = 1000 WHERE chunk_id = 'harbour-museum:p02'", "the last is number 1000"),
        ("PRAGMA user_version = 99", "version 99 is later"),
    ],
)
def test_damage_of_rows_is_told(folder, statement, told):
    execute(folder, statement.format(table=table_of(folder)))
    report = check(folder)
    assert not report.is_clean and any(told in problem for problem in report.problems), report.problems


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda data: data[:-1], "its length is not"),
        (lambda data: data + b"x", "its length is not"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "its checksum does not match"),
        (lambda data: b"\xff" * 8 + data[8:], "its header is not a chunk's"),
        (lambda data: data[:8] + b"[" * (len(data) - 8), "header"),
        (lambda data: b"", "header"),
        (lambda data: data[:8] + data[8:].replace(b'"hash":"', b'"hash":"0', 1)[: len(data) - 8], "header|length|another chunk"),
    ],
    ids=range(7),
)
def test_damage_of_kv_files_is_told(folder, change, told):
    import re

    path = sorted((folder / "chunks").glob("*.safetensors"))[0]
    path.write_bytes(change(path.read_bytes()))
    (problem,) = check(folder).problems
    assert problem.startswith(path.name) and re.search(told, problem), problem


def test_a_file_under_another_name_is_told_and_leftovers_are_only_counted(folder):
    first, second, *_ = sorted((folder / "chunks").glob("*.safetensors"))
    second.write_bytes(first.read_bytes())
    (folder / "chunks" / f"{'a' * 32}.0123.tmp").write_bytes(b"half")
    first.rename(first.with_name(f"{first.name}.bad"))
    report = check(folder)
    assert report.problems == (f"{second.name}: it holds another chunk than its name says",)
    assert (report.num_temporary, report.num_set_aside) == (1, 1)


def test_the_command_ends_with_one_where_something_is_damaged(folder):
    (folder / "library" / FILE_NAME).write_bytes(b"no database" * 1000)
    done = subprocess.run([sys.executable, "-m", "engine.check", str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == ""
    assert json.loads(done.stdout.splitlines()[-1])["clean"] is False and "cannot be read" in done.stdout
