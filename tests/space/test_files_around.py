"""The files that other machines read: the daily check of a deployed Space, the image for a GPU machine."""

import re
import subprocess

import pytest
import yaml
from launch import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEPLOY = ROOT / "deploy"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_valid_and_runs_files_that_are_there(path):
    flow = yaml.safe_load(path.read_text())
    # YAML 1.1 reads the key `on` as true.
    triggers = flow[True]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", triggers["schedule"][0]["cron"]) and "workflow_dispatch" in triggers
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        assert job["runs-on"] and 0 < job["timeout-minutes"] <= 60
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands and all((ROOT / command.split()[1]).is_file() for command in commands)
        # An address is handed over by the environment, never pasted into the command.
        assert not [command for command in commands if "${{" in command]


def test_there_is_a_daily_check():
    assert [path.name for path in WORKFLOWS] == ["health.yml"]


def test_the_image_copies_what_is_there_and_what_its_context_holds():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    held = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"app.py", "engine", "kernels", "viz", "assets", "datasets"} <= set(copied)
    assert set(copied) == held and all((ROOT / name).exists() for name in copied)


def test_the_image_has_the_release_that_the_plugin_is_written_for():
    pin = re.search(r"sglang==([\d.]+)", (ROOT / "requirements-sglang.txt").read_text())
    assert pin and f"SGLANG_TAG=v{pin[1]}" in (DEPLOY / "Dockerfile").read_text()


def test_the_images_start_is_a_script_that_bash_reads():
    script = DEPLOY / "serve.sh"
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert script.stat().st_mode & 0o111
