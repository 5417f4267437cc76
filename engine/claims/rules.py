"""The rules that compute our figure for a claim, filed by name; every verdict on the page comes from one of them.

A rule takes the evidence and the numbers of the claim and returns one finding for each result set (run collection,
table) that holds what it needs, or none.
"""

from collections.abc import Callable, Iterable

from engine.claims.claim import Claim, Evidence, Finding, Judged

Rule = Callable[..., Iterable[Finding]]
RULES: dict[str, Rule] = {}
NOT_MEASURED = Finding("not measured yet", "–", "No loaded result holds what this needs.")


def rule(function: Rule) -> Rule:
    """Files a rule under its own name."""
    assert function.__name__ not in RULES, f"the rule {function.__name__!r} is filed twice"
    RULES[function.__name__] = function
    return function


def judge(claim: Claim, evidence: Evidence) -> Judged:
    """Returns the claim with every finding of its rule, most samples first; 'not measured yet' where there is none."""
    found = sorted(RULES[claim.rule](evidence, **claim.params), key=lambda finding: -(finding.basis.n if finding.basis else 0))
    return Judged(claim, tuple(found) or (NOT_MEASURED,))


@rule
def not_testable(evidence: Evidence, why: str) -> Iterable[Finding]:
    """Says why a claim cannot be measured here."""
    return (Finding("not testable here", "–", why),)
