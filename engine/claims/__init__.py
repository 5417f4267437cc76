"""Published claims judged by our own results. Importing the package files all rules."""

from engine.claims import attention_rules, eviction_rules, fusion_rules
from engine.claims.claim import Claim, ClaimGroup, Evidence, Finding, Judged, LayerTable, load_claims
from engine.claims.rules import RULES, judge

__all__ = [
    "RULES",
    "Claim",
    "ClaimGroup",
    "Evidence",
    "Finding",
    "Judged",
    "LayerTable",
    "attention_rules",
    "eviction_rules",
    "fusion_rules",
    "judge",
    "load_claims",
]
