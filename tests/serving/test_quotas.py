"""Quotas on a clock of the test's own."""

import pytest

from engine.errors import QuotaExceeded
from engine.protection import MIB, Protection
from engine.serving.clients import Client
from engine.serving.quotas import ADDRESS_FACTOR, Quotas

LIMITS = Protection(public=True, requests_per_minute=6, tokens_per_hour=100, upload_mib_per_hour=2)
ANNA, BERT = Client("anna", "10.0.0.1"), Client("bert", "10.0.0.2")


class Clock:
    """Seconds as the test says."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def quotas(clock):
    return Quotas(LIMITS, clock)


def test_a_used_up_amount_comes_back_with_time(quotas, clock):
    for _ in range(6):
        quotas.charge(ANNA, "requests")
    with pytest.raises(QuotaExceeded, match=r"More than 6 requests a minute; try again in 10 s\.") as caught:
        quotas.charge(ANNA, "requests")
    assert caught.value.retry_after_s == pytest.approx(10)
    clock.now_s = 9.9
    with pytest.raises(QuotaExceeded):
        quotas.charge(ANNA, "requests")
    clock.now_s = 10.0
    quotas.charge(ANNA, "requests")


def test_one_client_does_not_use_up_anothers(quotas):
    for _ in range(6):
        quotas.charge(ANNA, "requests")
    quotas.charge(BERT, "requests")


def test_many_sessions_of_one_address_share_a_wider_quota(quotas):
    for i in range(6 * ADDRESS_FACTOR):
        quotas.charge(Client(f"session {i}", "10.0.0.9"), "requests")
    with pytest.raises(QuotaExceeded):
        quotas.charge(Client("one more", "10.0.0.9"), "requests")


def test_a_refused_charge_uses_nothing(quotas, clock):
    quotas.charge(ANNA, "upload_bytes", 1 * MIB)
    with pytest.raises(QuotaExceeded, match="2 MiB of uploads an hour"):
        quotas.charge(ANNA, "upload_bytes", MIB + 1)
    quotas.charge(ANNA, "upload_bytes", 1 * MIB)


def test_what_can_never_pass_says_so(quotas):
    with pytest.raises(QuotaExceeded, match=r"This needs 3 of 2 MiB of uploads an hour; send less\."):
        quotas.charge(ANNA, "upload_bytes", 3 * MIB)


def test_tokens_are_known_afterwards_and_then_waited_for(quotas, clock):
    quotas.check(ANNA, "tokens")
    quotas.settle(ANNA, "tokens", 150)
    with pytest.raises(QuotaExceeded):
        quotas.check(ANNA, "tokens")
    clock.now_s = 3600 * 0.52
    quotas.check(ANNA, "tokens")


def test_a_clock_that_stands_still_or_a_long_absence_gives_no_more_than_the_quota(quotas, clock):
    clock.now_s = 1e9
    for _ in range(6):
        quotas.charge(ANNA, "requests")
    with pytest.raises(QuotaExceeded):
        quotas.charge(ANNA, "requests")


def test_without_limits_everything_passes(clock):
    free = Quotas(Protection(), clock)
    for kind in ("requests", "tokens", "upload_bytes"):
        free.charge(ANNA, kind, 10**12)
        free.settle(ANNA, kind, 10**12)
        free.check(ANNA, kind)


def test_memory_of_clients_is_bounded(quotas, monkeypatch):
    monkeypatch.setattr("engine.serving.quotas.MAX_BUCKETS", 8)
    for i in range(100):
        quotas.charge(Client(f"session {i}", f"10.0.1.{i}"), "requests")
    assert len(quotas._buckets) == 8
