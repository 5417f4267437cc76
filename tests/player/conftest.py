"""Sites of the player, served by nothing but a file server, and visits that record what goes wrong."""

import pytest
from fake_runs import ALL_METHODS, fake_run, injection_scenario
from player_site import file_server, visiting_player

from engine.runfile import save_run
from viz.player.static import write_site


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    write_site(folder)
    return folder


@pytest.fixture(scope="session")
def site(site_folder):
    with file_server(site_folder) as url:
        yield url


@pytest.fixture
def visit(browser, site):
    with visiting_player(browser, site) as opened:
        yield opened
        assert opened.problems == []


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory):
    runs, folder = tmp_path_factory.mktemp("hostile-runs"), tmp_path_factory.mktemp("hostile-site")
    save_run(fake_run(injection_scenario().request("q1"), ALL_METHODS), runs / "injection.run.json.gz")
    write_site(folder, runs)
    return folder
