"""Every rule of a Space's folder refuses what breaks it, with the value, the rule and the remedy."""

import pytest

from deploy.card import check_card, write_card
from deploy.files import MAX_BYTES, check_files, copy_files, make_room
from deploy.imports import check_imports, imported_modules
from deploy.problem import SpaceProblem
from deploy.requirements import FILE, check_requirements, pinned, read_requirements
from deploy.targets import targets

CARD = {**targets("2.13.0")[0].card, "sdk_version": "6.31.0"}
BAD_FIELDS = [
    ("title", ""),
    ("emoji", "QC"),
    ("colorFrom", "teal"),
    ("sdk", "streamlit"),
    ("sdk_version", "6.31"),
    ("python_version", "2.7"),
    ("app_file", "../app.py"),
    ("app_file", "other.py"),
    ("header", "none"),
    ("fullWidth", "yes"),
    ("short_description", "x" * 61),
    ("models", ["SmolLM2"]),
    ("tags", ["KV cache"]),
    ("license", "mit"),
    ("pinned", "no"),
    ("suggested_hardware", "h100"),
    ("startup_duration_timeout", "soon"),
    ("preload_from_hub", ["HuggingFaceTB/SmolLM2 config.json, model.safetensors"]),
    ("sleep_time", 300),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "app.py").write_text("import gradio\n")
    (tmp_path / FILE).write_text("gradio==6.31.0\n")
    return tmp_path


def test_a_whole_card_holds(folder):
    write_card(folder, CARD, "# Text\n")
    assert check_card(folder, "6.31.0") == CARD


@pytest.mark.parametrize(("name", "value"), BAD_FIELDS)
def test_a_card_with_a_bad_field_is_refused_by_its_name(folder, name, value):
    write_card(folder, {**CARD, name: value}, "")
    with pytest.raises(SpaceProblem, match=name):
        check_card(folder, "6.31.0")


def test_a_card_without_a_field_and_a_folder_without_a_card_are_refused(folder):
    with pytest.raises(SpaceProblem, match="is missing"):
        check_card(folder, "6.31.0")
    write_card(folder, {name: value for name, value in CARD.items() if name != "header"}, "")
    with pytest.raises(SpaceProblem, match="lacks header"):
        check_card(folder, "6.31.0")


def test_two_versions_of_gradio_are_refused(folder):
    write_card(folder, CARD, "")
    with pytest.raises(SpaceProblem, match=r"6\.31\.0.*6\.30\.0"):
        check_card(folder, "6.30.0")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-e .", "plain requirements"),
        ("-r other.txt", "plain requirements"),
        ("--no-deps", "plain requirements"),
        ("torch @ https://example.org/torch.whl", "names an address"),
        ("torch = 2", "is not a requirement"),
        ("torch>=2.8", "pin it"),
        ("torch==2.*", "pin it"),
        ("torch", "pin it"),
    ],
)
def test_a_requirement_that_is_no_plain_pin_is_refused(folder, line, words):
    (folder / FILE).write_text(f"gradio==6.31.0\n{line}\n")
    with pytest.raises(SpaceProblem, match=words):
        check_requirements(folder)


def test_a_pin_outside_of_what_the_project_allows_is_refused(folder):
    (folder / FILE).write_text("torch>=2.8,<2.14\nnot-there-at-all>=1\n")
    torch, absent = read_requirements(folder / FILE)
    with pytest.raises(SpaceProblem, match=r"torch 2\.7\.0"):
        pinned([torch], {"torch": "2.7.0"})
    with pytest.raises(SpaceProblem, match="not-there-at-all"):
        pinned([absent])


def test_an_import_without_a_pin_is_refused_and_the_optional_ones_pass(folder):
    (folder / "engine").mkdir()
    (folder / "engine" / "a.py").write_text(
        "import datasets, json, engine.b\n\ndef late():\n    import sglang\n    from docx import Document\n"
    )
    assert set(imported_modules(folder)) == {"gradio", "datasets", "sglang", "docx"}
    assert check_imports(folder, ("gradio", "datasets", "python-docx")) == 4
    with pytest.raises(SpaceProblem, match=r"a\.py imports 'docx'.*python-docx"):
        check_imports(folder, ("gradio", "datasets"))


def test_large_files_are_named(folder):
    for name in ("a.bin", "b.bin"):
        (folder / name).write_bytes(b"\0" * (MAX_BYTES + 1))
    with pytest.raises(SpaceProblem, match=r"a\.bin \(10\.0 MiB\), b\.bin \(10\.0 MiB\)"):
        check_files(folder)


@pytest.mark.parametrize("name", [".env", ".env.local", "server.pem", "id_ed25519", "my_credentials.json"])
def test_a_file_with_the_name_of_a_secret_is_refused(folder, name):
    (folder / name).write_text("x")
    with pytest.raises(SpaceProblem, match="secret"):
        check_files(folder)


def test_a_key_in_a_text_is_refused_and_not_repeated(folder):
    key = "hf_" + "a1B2" * 9
    (folder / "notes.md").write_text(f"one\ntwo {key}\n")
    with pytest.raises(SpaceProblem, match="line 2") as caught:
        check_files(folder)
    assert key not in str(caught.value)


def test_a_link_is_neither_copied_nor_pushed(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "passwords.txt").write_text("x")
    (folder / "data").symlink_to(outside / "passwords.txt")
    with pytest.raises(SpaceProblem, match="is a link"):
        check_files(folder)
    with pytest.raises(SpaceProblem, match="is a link"):
        copy_files(folder, ["data"], outside)


def test_what_does_not_belong_there_is_refused(folder):
    with pytest.raises(SpaceProblem, match="git ignores"):
        check_files(folder, ["app.py"])
    assert check_files(folder, ["app.py", FILE])[0] == 2


def test_a_folder_of_someone_else_is_left_alone(folder):
    with pytest.raises(SpaceProblem, match="not a Space of ours"):
        make_room(folder)
    write_card(folder, CARD, "")
    make_room(folder)
    assert list(folder.iterdir()) == []


def test_a_pin_that_the_hubs_gradio_does_not_go_with_is_refused(folder):
    (folder / FILE).write_text("gradio[mcp,oauth]==6.31.0\npydantic==2.14.4\n")
    with pytest.raises(SpaceProblem, match=r"pydantic 2\.14\.4.*gradio\[mcp,oauth\]"):
        check_requirements(folder)
    (folder / FILE).write_text("gradio[mcp,oauth]==6.31.0\npydantic==2.12.5\n")
    assert check_requirements(folder) == {"gradio": "6.31.0", "pydantic": "2.12.5"}
