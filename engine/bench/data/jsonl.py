"""Samples of a JSONL file: id, question, answers, passages[{title, text, is_supporting}], one a line."""

import codecs
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.bench.data.passages import Packing, QuestionRow, sample_of
from engine.bench.data.sample import Sample
from engine.errors import BadRequest


class ReadFile(NamedTuple):
    """The samples of a file in its order, and one sentence for each line that is none."""

    samples: list[Sample]
    bad_lines: tuple[str, ...]


def read_jsonl(path: Path, packing: Packing, skip_bad: bool = False) -> ReadFile:
    """Returns the samples of a file. Raises BadRequest naming file and line of the first bad one, unless `skip_bad`."""
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise BadRequest(f"The data file {str(path)!r} cannot be read ({error.strerror}); give the path of a JSONL file.") from None
    samples, bad_lines = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            samples.append(sample_of(msgspec.json.decode(line, type=QuestionRow), packing))
        except (msgspec.DecodeError, UnicodeDecodeError, BadRequest) as error:
            sentence = f"{path}, line {number}: not a sample ({str(error).rstrip('.')}); mend or remove the line."
            if not skip_bad:
                raise BadRequest(sentence) from None
            bad_lines.append(sentence)
    return ReadFile(samples, tuple(bad_lines))
