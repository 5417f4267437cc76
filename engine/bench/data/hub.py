"""Multi-hop question sets of the Hugging Face hub: where they are, and how their rows read.

What was fetched once is read from the local cache afterwards, also offline.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.bench.data.passages import Packing, Passage, QuestionRow, sample_of
from engine.bench.data.sample import Sample
from engine.errors import BadRequest


@dataclass(frozen=True, slots=True)
class HubSet:
    """A set on the hub and the function that reads its rows; `to_row` gives None for a row without an answer."""

    repo: str
    config: str | None
    to_row: Callable[[Mapping[str, Any]], QuestionRow | None]
    split: str = "validation"


def musique_row(row: Mapping[str, Any]) -> QuestionRow | None:
    """Returns a row of MuSiQue: paragraphs[{title, paragraph_text, is_supporting}], answer, answer_aliases."""
    if not row.get("answerable", True):
        return None
    passages = tuple(Passage(p["paragraph_text"], p["title"], bool(p["is_supporting"])) for p in _records(row["paragraphs"]))
    aliases = [alias for alias in row.get("answer_aliases") or () if alias.strip()]
    return QuestionRow(row["id"], row["question"], tuple(dict.fromkeys((row["answer"], *aliases))), passages)


def titled_row(row: Mapping[str, Any]) -> QuestionRow:
    """Returns a row of HotpotQA or 2WikiMultihopQA: context{title, sentences}, supporting_facts{title, sent_id}, answer."""
    supporting = {fact["title"] for fact in _records(row["supporting_facts"])}
    passages = tuple(
        Passage(" ".join(sentence.strip() for sentence in page["sentences"]), page["title"], page["title"] in supporting)
        for page in _records(row["context"])
    )
    row_id = row["id"] if "id" in row else row["_id"]
    return QuestionRow(row_id, row["question"], (row["answer"],), tuple(p for p in passages if p.text.strip()))


HUB_SETS: Mapping[str, HubSet] = {
    "musique": HubSet("dgslibisey/MuSiQue", None, musique_row),
    "2wikimqa": HubSet("framolfese/2WikiMultihopQA", None, titled_row),
    "hotpotqa": HubSet("hotpotqa/hotpot_qa", "distractor", titled_row),
}


def read_hub(name: str, source: HubSet, packing: Packing, seed: int) -> Iterator[Sample]:
    """Yields the answerable samples of a set in an order drawn by the seed. Raises BadRequest with one sentence."""
    rows = _fetch(name, source)
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    for index in order:
        try:
            row = source.to_row(rows[index])
            if row is not None:
                yield sample_of(row, packing)
        except (KeyError, TypeError, AttributeError, BadRequest) as error:
            reason = str(error).rstrip(".")
            raise BadRequest(f"Row {index} of {source.repo} does not read as expected ({reason}); use a JSONL file instead.") from None


def _fetch(name: str, source: HubSet) -> Any:
    from datasets.exceptions import DatasetsError

    from datasets import load_dataset

    try:
        return load_dataset(source.repo, source.config, split=source.split)
    except (OSError, ValueError, DatasetsError) as error:
        first = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise BadRequest(
            f"The set {name!r} is not on this machine and cannot be fetched ({first}); run this command once with a network so that "
            f"Hugging Face's cache has {source.repo}, or give the path of a JSONL file."
        ) from None


def _records(value: Any) -> list[Mapping[str, Any]]:
    """Returns a list of records, which the hub's formats give as such or as one record of columns."""
    if isinstance(value, Mapping):
        names = list(value)
        return [dict(zip(names, items, strict=True)) for items in zip(*value.values(), strict=True)]
    return list(value)
