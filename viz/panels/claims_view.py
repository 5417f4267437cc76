"""Judged claims as plain data for the player. Knows nothing of Gradio."""

from typing import Any

from engine.claims import ClaimGroup, Evidence, Finding, Judged, judge
from engine.claims.claim import VERDICTS, Verdict

MARKS = {"reproduced": "✓", "not reproduced": "✕", "undecided": "?", "not measured yet": "…", "not testable here": "–"}
INTRO = (
    "What the QCFuse and SAECache papers and others claim, beside what this program measured. The verdict is computed from the result "
    "files by fixed rules, and it speaks of our model and machine only: “not reproduced” on a small model refutes nobody. "
    "Reproduced: our estimate reaches the claimed one and the 95 % interval excludes no effect. "
    "Not reproduced: the whole interval stays below it. Undecided: too few samples. "
    "Where several result sets can answer, the one with the most samples speaks."
)


def claims_view(groups: tuple[ClaimGroup, ...], evidence: Evidence) -> dict[str, Any]:
    """Returns every claim with its findings, and how many have each verdict."""
    judged = [(group, [judge(claim, evidence) for claim in group.claims]) for group in groups]
    verdicts = [one.verdict for _, claims in judged for one in claims]
    return {
        "intro": INTRO,
        "counts": [{"verdict": name, "mark": MARKS[name], "kind": _kind(name), "num": verdicts.count(name)} for name in VERDICTS],
        "groups": [{"title": group.title, "about": group.about, "claims": [_claim(one) for one in claims]} for group, claims in judged],
    }


def _claim(judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    return {
        "claim": claim.claim,
        "figure": claim.figure,
        "setting": claim.setting,
        "source": claim.source,
        "note": claim.note,
        "command": claim.command,
        "findings": [_finding(finding) for finding in judged.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    basis = finding.basis
    parts = [basis.data, f"n = {basis.n}", basis.model, basis.hardware, basis.created, "REPLAY"] if basis else []
    return {
        "verdict": finding.verdict,
        "mark": MARKS[finding.verdict],
        "kind": _kind(finding.verdict),
        "figure": finding.figure,
        "why": finding.why,
        "basis": " · ".join(part for part in parts if part),
        "command": basis.command if basis else "",
    }


def _kind(verdict: Verdict) -> str:
    return verdict.replace(" ", "-")
