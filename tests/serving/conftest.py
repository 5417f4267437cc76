"""Servers of the API that several tests visit."""

import pytest
from serving_world import api_server, tiny_session


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session on a tiny model."""
    with tiny_session(tmp_path_factory.mktemp("session")) as session:
        yield session


@pytest.fixture(scope="module")
def url(session):
    """The address of a server over that session."""
    with api_server(session) as url:
        yield url
