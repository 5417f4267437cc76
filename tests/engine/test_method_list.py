"""The list of methods read from the sources equals what is registered, and needs nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.method_list import FOLDER, MethodNote, declared_notes, method_names, method_notes

TOY = '''
from engine.fusion.base import METHODS, FusionMethod

@METHODS.register("toy")
class Toy(FusionMethod):
    """Recomputes what a toy would,
    and nothing else (see `Nothing`).

    More about it.
    """
'''


def test_what_the_sources_declare_is_what_is_registered():
    from engine.fusion import METHODS
    from engine.fusion.compose import method_names as registered

    assert method_names() == registered()
    for note in declared_notes():
        if note.name in METHODS.names():
            assert " ".join((METHODS.get(note.name).__doc__ or "").split()).startswith(note.rule)


def test_every_method_says_what_it_does_and_no_rule_points_into_the_code():
    for note in declared_notes():
        assert len(note.rule) > 30 and note.rule.endswith(".") and "`" not in note.rule and "\n" not in note.rule, note


def test_a_new_file_is_a_new_method(tmp_path):
    for path in FOLDER.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "toy.py").write_text(TOY)
    assert set(declared_notes(tmp_path)) - set(declared_notes()) == {MethodNote("toy", "Recomputes what a toy would, and nothing else.")}


@pytest.fixture
def toy():
    """Registers a method for the length of a test."""
    from engine.fusion.base import METHODS
    from engine.fusion.reuse import DirectReuse

    METHODS.register("toy")(type("Toy", (DirectReuse,), {"__doc__": "A toy rule.", "name": "toy"}))
    yield "toy"
    del METHODS._classes["toy"]


def test_a_method_registered_elsewhere_is_listed_too(toy):
    assert method_notes()[-1] == MethodNote("toy", "A toy rule.") and toy in method_names()


def test_listing_methods_and_building_the_page_import_no_torch():
    code = (
        "import sys; from engine.session import Session; from engine.settings import Settings; from viz.panels.page import build\n"
        "session = Session(Settings()); build(session)\n"
        "print(len(session.method_names()), [m for m in ('torch', 'transformers', 'triton') if m in sys.modules])"
    )
    root = Path(__file__).resolve().parents[2]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[-2].endswith("[]") and int(out.stdout.split("\n")[-2].split()[0]) > 10
