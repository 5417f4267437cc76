"""Quality of an answer: against gold answers, and against what full prefill would have said."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def rouge_l(answer: str, golds: Sequence[str]) -> float | None:
    """Returns the best ROUGE-L F-measure over the gold answers (rouge-score, no stemming), None without gold.

    Its words are runs of letters and digits of any script, lower-cased: the package's own rule drops all but a-z.
    """
    if not golds:
        return None
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], tokenizer=_Words())
    return max(scorer.score(gold, answer)["rougeL"].fmeasure for gold in golds)


def token_f1(answer: str, golds: Sequence[str]) -> float | None:
    """Returns the best token F1 after SQuAD's normalisation (lower case, no punctuation, no articles), None without gold."""
    if not golds:
        return None
    return max(_f1(_normalised(answer), _normalised(gold)) for gold in golds)


def exact_match(answer: str, golds: Sequence[str]) -> bool | None:
    """Returns whether the answer equals any gold answer after SQuAD's normalisation; None without gold."""
    if not golds:
        return None
    return any(_normalised(answer) == _normalised(gold) for gold in golds)


def contains_gold(answer: str, golds: Sequence[str]) -> bool | None:
    """Returns whether any gold answer stands in the answer, letter case aside; None without gold."""
    if not golds:
        return None
    return any(gold.casefold() in answer.casefold() for gold in golds)


def mean_nll(log_probs: Tensor, ids: np.ndarray) -> float:
    """Returns the mean negative log-likelihood, nats, of ids [n] under log_probs [>= n, vocabulary]."""
    picked = log_probs[torch.arange(len(ids)), torch.from_numpy(ids.astype(np.int64)).to(log_probs.device)]
    return float(-picked.mean())


def mean_kl(full: Tensor, other: Tensor) -> float:
    """Returns the mean over rows of KL(full || other), nats, of log-probabilities [n, vocabulary]; never below 0."""
    divergence = torch.nn.functional.kl_div(other.double(), full.double(), log_target=True, reduction="none").sum(dim=-1)
    return max(0.0, float(divergence.mean()))


def first_difference(ids: np.ndarray, reference: np.ndarray) -> int | None:
    """Returns the index of the first token that differs (or that only one side has), None where both are equal."""
    for i, (a, b) in enumerate(zip(ids.tolist(), reference.tolist(), strict=False)):
        if a != b:
            return i
    return None if len(ids) == len(reference) else min(len(ids), len(reference))


def span_recall(rows: np.ndarray, spans: Sequence[tuple[int, int]]) -> float | None:
    """Returns the share of the spans' [start, stop) positions that are among `rows` (Recall of 2606.05875, 3.2.3)."""
    wanted = {position for start, stop in spans for position in range(start, stop)}
    if not wanted:
        return None
    return len(wanted & set(rows.tolist())) / len(wanted)


def kv_distance(keys: Tensor, values: Tensor, full_keys: Tensor, full_values: Tensor) -> np.ndarray:
    """Returns float32 [L, 2]: relative L2 distance of K and V [L, n, Hkv, D] to full prefill's, per layer."""

    def relative(a: Tensor, b: Tensor) -> Tensor:
        return (a.float() - b.float()).flatten(1).norm(dim=1) / b.float().flatten(1).norm(dim=1).clamp_min(1e-12)

    return torch.stack([relative(keys, full_keys), relative(values, full_values)], dim=1).cpu().numpy()


class _Words:
    def tokenize(self, text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())


def _normalised(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _f1(answer: list[str], gold: list[str]) -> float:
    common = sum((Counter(answer) & Counter(gold)).values())
    if not answer or not gold or not common:
        return float(answer == gold)
    precision, recall = common / len(answer), common / len(gold)
    return 2 * precision * recall / (precision + recall)
