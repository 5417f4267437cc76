"""What `make space` writes can be pushed: plain pins, nothing ignored, nothing large, and what the app opens with is there."""

import json
import os
import subprocess
import sys

import pytest
from launch import ROOT
from packaging.requirements import Requirement

from deploy.card import check_card
from deploy.files import MAX_BYTES, files_to_push
from deploy.requirements import check_requirements
from deploy.space import check, main
from deploy.targets import MODEL
from engine.model.bundled import HUB_ID

APPS = ("space", "space-zerogpu")


@pytest.mark.parametrize("name", APPS)
def test_the_apps_requirements_are_plain_pins_and_agree_with_the_card(spaces, name):
    lines = (spaces[name] / "requirements.txt").read_text().splitlines()
    assert len(lines) > 20 and all(len(Requirement(line).specifier) == 1 and "==" in line and "+" not in line for line in lines)
    versions = check_requirements(spaces[name])
    assert check_card(spaces[name], versions["gradio"])["sdk_version"] == versions["gradio"]
    assert "sglang" not in versions and "triton" not in versions


@pytest.mark.parametrize("name", (*APPS, "space-static"))
def test_a_space_holds_no_large_file_no_link_and_nothing_beside_what_belongs_there(spaces, name):
    files = [path for path in spaces[name].rglob("*") if not path.is_dir()]
    assert files and all(path.stat().st_size <= MAX_BYTES and not path.is_symlink() for path in files)
    assert not [path for path in files if path.suffix == ".pyc" or "screenshots" in path.parts or "tests" in path.parts]
    assert str(spaces[name]) in check(spaces[name])


def test_what_git_ignores_is_not_pushed(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "engine").mkdir()
    for name in ("app.py", "engine/a.py", "engine/private.log", "notes.txt"):
        (tmp_path / name).write_text("x")
    assert files_to_push(tmp_path) == ["app.py", "engine/a.py"]


def test_the_app_space_offers_the_bundled_model_by_the_id_that_the_engine_asks_for(spaces):
    card = check_card(spaces["space"], check_requirements(spaces["space"])["gradio"])
    assert MODEL == HUB_ID and card["models"] == [HUB_ID] and card["preload_from_hub"][0].split()[0] == HUB_ID


def test_torch_for_processors_comes_first_and_meets_the_requirement(spaces):
    options, torch = (spaces["space"] / "pre-requirements.txt").read_text().splitlines()
    assert options.startswith("--extra-index-url https://") and torch.endswith("+cpu")
    assert torch.removesuffix("+cpu") in (spaces["space"] / "requirements.txt").read_text().splitlines()
    assert not (spaces["space-zerogpu"] / "pre-requirements.txt").exists()


def test_zerogpu_gets_versions_that_it_serves(spaces):
    versions = check_requirements(spaces["space-zerogpu"])
    card = check_card(spaces["space-zerogpu"], versions["gradio"])
    assert versions["torch"] in ("2.8.0", "2.9.1", "2.10.0", "2.11.0") and card["python_version"] in ("3.10.13", "3.12.12")


def test_the_static_space_is_the_site_behind_a_card(spaces):
    folder = spaces["space-static"]
    assert check_card(folder, "")["sdk"] == "static"
    site = json.loads((folder / "site.json").read_text())
    assert site["runs"] and all((folder / run["packed"]).is_file() for run in site["runs"])


def test_the_assembled_app_imports_nothing_from_outside_its_folder(spaces):
    code = "import app, engine.session, viz.panels.page, viz.panels.zerogpu, sys; print(viz.panels.page.__file__, 'deploy' in sys.modules)"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=spaces["space"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(spaces["space"] / "viz" / "panels" / "page.py"), "False"]


def test_settings_of_the_readme_are_settings_of_the_app(spaces):
    known = "".join((ROOT / "engine" / name).read_text() for name in ("settings.py", "space.py"))
    rows = [line for line in (spaces["space"] / "README.md").read_text().splitlines() if line.startswith("| `FUSESCOPE_")]
    names = [word.strip("`,").removeprefix("FUSESCOPE_") for row in rows for word in row.split("|")[1].split()]
    assert len(names) >= 12 and [name for name in names if f"_{name}" not in known and f'"{name}"' not in known] == []


def test_a_bad_state_is_one_sentence_and_a_code(tmp_path, capsys):
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "thesis.txt").write_text("mine")
    assert main(str(tmp_path)) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "not a Space of ours" in said and (tmp_path / "space" / "thesis.txt").read_text() == "mine"
