"""The mirror of a server's pages: it ranks as the built-in tree does, passes over what the server holds, and follows what it drops."""

import numpy as np
import pytest

from engine.prefix.policies import POLICIES
from engine.prefix.request import CacheRequest
from engine.serving.sglang.mirror import Mirror


@pytest.fixture(params=["saecache", "sae_g"])
def mirror(request):
    """A mirror of twelve pages with three conversations of three pages each, the first one used longest ago."""
    made = Mirror(POLICIES.create(request.param), 12, 4, 64)
    for session in range(3):
        serve(made, session, [f"{session} {i}" for i in range(3)])
    return made


def serve(mirror, session, keys):
    path = mirror.path(keys, [1] * len(keys))
    lease = mirror.begin(CacheRequest(session, 10.0 * session, session, 0, False, False, -1.0, 4 * len(keys), path, len(path)))
    assert mirror.insert(lease, path) == []
    mirror.end(lease)
    return path


def rows(mirror, session):
    return mirror.path([f"{session} {i}" for i in range(3)], [1] * 3).tolist()


def test_pages_leave_from_the_end_of_the_conversation_that_the_policy_names(mirror):
    wanted = rows(mirror, 0)
    assert mirror.tree.choose(4, 40.0, lambda block: True) == [*wanted[::-1], rows(mirror, 1)[-1]]
    mirror.tree.check_integrity()


def test_what_the_server_holds_is_passed_over_and_stays_a_candidate(mirror):
    held = rows(mirror, 0)
    assert mirror.tree.choose(2, 40.0, lambda block: block not in held) == rows(mirror, 1)[:0:-1]
    assert mirror.tree.choose(1, 40.0, lambda block: True) == [held[-1]]
    mirror.tree.check_integrity()


def test_pages_that_the_server_dropped_are_followed_from_the_end(mirror):
    gone = rows(mirror, 1)
    mirror.tree.remove([gone[0]], 40.0)
    assert mirror.columns.cached[gone].all(), "a page that others stand behind cannot have left"
    mirror.tree.remove(gone[:0:-1], 40.0)
    assert mirror.columns.cached[gone].tolist() == [True, False, False]
    mirror.tree.check_integrity()


def test_a_flushed_mirror_starts_anew(mirror):
    mirror.reset()
    assert mirror.tree.size == 0 and not mirror.columns.cached.any()
    path = serve(mirror, 0, ["a", "b"])
    assert mirror.ancestor(int(path[1]), 1) == path[0] and mirror.ancestor(int(path[1]), 2) == -1
    assert np.array_equal(mirror.path(["a", "b"], [1, 1]), path)
