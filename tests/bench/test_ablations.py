"""Ablations: every one is a policy that exists, and what was found on large loads repeats in direction on a small one."""

import json

import pytest

from engine.bench.__main__ import main
from engine.bench.ablations import ABLATIONS, ablation_rows
from engine.prefix.lab import ReplayLab
from engine.prefix.policies import POLICIES
from engine.prefix.workloads.generate import generate

CAPACITY = 0.05
# What the ablations of SAE-G found clearly everywhere: looking ahead, and telling sessions apart.
CORE = ("instant hazard, no look-ahead", "one class for session blocks", "no predictor")


@pytest.fixture(scope="module")
def rows():
    labs = [ReplayLab(generate("balanced", seed), seed, 0.77) for seed in (0, 1)]
    core = [one for one in ABLATIONS if one.change in CORE]
    return {row["change"]: row for row in ablation_rows(labs, "0.77", [CAPACITY], ablations=core)}


@pytest.mark.parametrize("one", ABLATIONS, ids=lambda one: one.change)
def test_an_ablation_is_another_policy_than_its_base(one):
    changed, base = POLICIES.create(one.policy, **one.params), POLICIES.create(one.base)
    assert changed != base and set(one.params) <= set(base.params())


def test_a_row_is_the_difference_of_two_replays(rows):
    row = rows["instant hazard, no look-ahead"]
    lab = ReplayLab(generate("balanced", 0), 0, 0.77)
    runs = [lab.run(POLICIES.create("sae_g", **params), lab.capacity(CAPACITY)) for params in (row["params"], {})]
    difference = runs[0].second_half.hit_blocks - runs[1].second_half.hit_blocks
    assert row["n"] == 2 and row["difference"]["lo"] <= row["difference"]["mean"] <= row["difference"]["hi"]
    assert min(abs(row["difference"][end] - difference) for end in ("lo", "hi")) < 0.02
    assert row["base"] == row["policy"] == "sae_g" and row["expected"] == "lower"


@pytest.mark.parametrize("change", CORE)
def test_the_core_of_sae_g_is_worth_having(rows, change):
    assert rows[change]["difference"]["mean"] < 0 < rows[change]["gap_closed"], "without it less is found, still more than under LRU"


def test_the_command_prints_them(capsys):
    assert main(["evict", "--workload", "tool_use", "--policies", "lru", "--capacity", "0.1", "--ablations", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["ablations"]
    assert [row["change"] for row in found] == [one.change for one in ABLATIONS]
