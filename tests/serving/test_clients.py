"""Who sends a request, by its headers."""

import pytest

from engine.errors import AccessDenied
from engine.protection import Protection
from engine.serving.clients import Client, identify

OPEN, PUBLIC, CLOSED = Protection(), Protection.for_public(), Protection(password="correct horse battery")
SESSION = "x-fusescope-session"
LONG = "a-text-that-nobody-guesses"


def client(protection, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return identify(named, "10.0.0.1", protection)


def test_on_ones_own_machine_any_key_names_an_owner_and_none_as_well():
    assert client(OPEN).owner and client(OPEN, authorization="Bearer none").owner
    assert client(OPEN, authorization="Bearer none") == client(OPEN, authorization="bearer none")
    assert client(OPEN, authorization="Bearer a") != client(OPEN, authorization="Bearer b")


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer none"}, {SESSION: "short"}, {"authorization": "Basic " + LONG}])
def test_in_public_a_short_secret_names_nobody(headers):
    found = identify(headers, "10.0.0.1", PUBLIC)
    assert found == Client(None, "10.0.0.1")
    with pytest.raises(AccessDenied, match="at least 16 characters"):
        _ = found.keeper


def test_the_session_goes_before_the_key_and_neither_is_kept_as_it_is():
    by_session = identify({SESSION: LONG, "authorization": "Bearer other-long-text-xyz"}, "10.0.0.1", PUBLIC)
    assert by_session == identify({SESSION: LONG}, "10.0.0.2", PUBLIC) or by_session.owner == identify({SESSION: LONG}, "x", PUBLIC).owner
    assert LONG not in str(by_session) and by_session.owner.startswith("api-")


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", "Basic correct horse battery", "Bearer correct horse batterY", "Bearer naïve"]
)
def test_a_wrong_password_is_refused_in_one_sentence(given):
    with pytest.raises(AccessDenied) as caught:
        identify({"authorization": given}, "10.0.0.1", CLOSED)
    assert "Authorization: Bearer <password>" in str(caught.value) and "correct" not in str(caught.value)


def test_behind_a_password_documents_need_a_session_since_all_share_the_key():
    key = "Bearer correct horse battery"
    assert identify({"authorization": key}, "10.0.0.1", CLOSED).owner is None
    assert identify({"authorization": key, SESSION: LONG}, "10.0.0.1", CLOSED).owner is not None


def test_the_password_is_in_no_printed_form_of_the_settings():
    assert "horse" not in repr(CLOSED)
