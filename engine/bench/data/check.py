"""What is odd about a list of samples before anything is measured on it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from engine.bench.data.passages import count_words
from engine.bench.data.sample import Sample
from engine.bench.report import spread


def data_report(
    samples: Sequence[Sample], bad_lines: Sequence[str] = (), reason_of: Callable[[Sample], str | None] | None = None
) -> dict[str, object]:
    """Returns counts and ids by finding, of JSON's types.

    Args:
        bad_lines: sentences on lines of the file that are no samples.
        reason_of: gives the sentence why a sample does not fit the model's context, None where it fits; None without a model.
    """
    over = None if reason_of is None else [sample.sample_id for sample in samples if reason_of(sample) is not None]
    return {
        "n": len(samples),
        "bad_lines": list(bad_lines),
        "without_gold": [s.sample_id for s in samples if s.answers and not s.is_yes_no and not s.holds_gold],
        "without_answer": [s.sample_id for s in samples if not s.answers],
        "duplicate_ids": _repeated(s.sample_id for s in samples),
        "duplicate_questions": _repeated(" ".join(s.question.split()).casefold() for s in samples),
        "yes_no": [s.sample_id for s in samples if s.is_yes_no],
        "over_context": over,
        "chunks": spread([len(s.chunks) for s in samples]),
        "words_per_chunk": spread([count_words(chunk.text) for s in samples for chunk in s.chunks]),
        "words": spread([sum(count_words(chunk.text) for chunk in s.chunks) for s in samples]),
    }


def _repeated(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
