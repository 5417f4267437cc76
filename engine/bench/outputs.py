"""Files a benchmark writes beside what it prints; what cannot be written is said before anything is measured."""

import csv
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from engine.bench.configs import FULL, Config
from engine.bench.records import SampleRecord
from engine.errors import BadRequest

_SAMPLE = ("sample_id", "is_yes_no", "num_doc_tokens", "num_question_tokens")


def check_file(option: str, path: Path | None) -> None:
    """Makes the folder of a file that will be written. Raises BadRequest where it cannot be."""
    if path is None:
        return
    if path.is_dir():
        raise BadRequest(f"{option} is {str(path)!r}, which is a folder; give the path of a file.")
    check_folder(option, path.parent)


def check_folder(option: str, path: Path | None) -> None:
    """Makes a folder that will be written to. Raises BadRequest where it cannot be."""
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"{option} needs the folder {str(path)!r}, which cannot be made ({error.strerror}); choose another.") from None
    if not os.access(path, os.W_OK):
        raise BadRequest(f"{option} needs the folder {str(path)!r}, which cannot be written to; choose another.")


def write_csv(path: Path, records: Sequence[SampleRecord], configs: Sequence[Config]) -> None:
    """Writes one row a sample, method and ratio; empty cells where nothing was measured."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for record in records:
            for config in configs:
                row = _cells(record, config)
                if writer is None:
                    writer = csv.DictWriter(file, fieldnames=list(row))
                    writer.writeheader()
                writer.writerow(row)


def _cells(record: SampleRecord, config: Config) -> dict[str, object]:
    method = record.method(config.label)
    measured = {name: value for name, value in asdict(method).items() if name not in ("label", "parts_s")}
    parts = {f"{name}_s": seconds for name, seconds in method.parts_s.items()}
    sample = {name: getattr(record, name) for name in _SAMPLE}
    speedup = record.method(FULL).ttft_s / method.ttft_s
    return {**sample, "method": config.method, "ratio": config.ratio, "speedup": speedup, **measured, **parts}
