"""The three Spaces, assembled once from this checkout."""

import importlib.metadata

import pytest
from packaging.version import Version

from deploy.space import assemble
from deploy.targets import targets


@pytest.fixture(scope="session")
def spaces(tmp_path_factory):
    """The folders by name."""
    build = tmp_path_factory.mktemp("build")
    return {target.folder: assemble(target, build) for target in targets(Version(importlib.metadata.version("torch")).public)}
