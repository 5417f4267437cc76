"""Runs as files, checked on the way in."""

from pathlib import Path

from engine.errors import BadRunFile
from engine.packedfile import PackedFile
from engine.types import MethodRun, Run

FORMAT = "fusescope-run/1"
_FILE = PackedFile(FORMAT, Run, "run file", ".run.json.gz", ("int32", "int64", "float32", "uint8"), 32 * 2**20, 256 * 2**20)


def dump_run(run: Run) -> bytes:
    """Returns a run as the bytes of a `fusescope-run/1` file; the same run gives the same bytes."""
    return _FILE.dump(run)


def save_run(run: Run, path: Path) -> None:
    """Writes a run file; a half-written one never stands under its name."""
    _FILE.save(run, path)


def load_run(path: Path) -> Run:
    """Returns the run of a file. Raises BadRunFile with one sentence."""
    run = _FILE.load(path)
    _check(run)
    return run


def parse_run(data: bytes) -> Run:
    """Returns the run that `dump_run` wrote, checked for version, types and sizes. Raises BadRunFile with one sentence."""
    run = _FILE.parse(data)
    _check(run)
    return run


def _check(run: Run) -> None:
    total = len(run.tokens)
    if not 0 <= run.system_len <= run.question_start <= total or len(run.token_ids) != total:
        raise BadRunFile(f"The run file's parts do not fit together: {total} tokens, question at {run.question_start}.")
    if any(not run.system_len <= chunk.start <= chunk.stop <= run.question_start for chunk in run.chunks):
        raise BadRunFile("The run file has a chunk outside the document part.")
    if any(not 0 <= a <= b <= total for a, b in (run.question_span, *run.answer_spans)):
        raise BadRunFile("The run file has a span outside the prompt.")
    for method in run.methods:
        _check_method(method, run)


def _check_method(method: MethodRun, run: Run) -> None:
    for name, positions in (("rows", method.rows), ("ranking", method.ranking), ("anchors", method.anchors)):
        if positions is not None and positions.size and not 0 <= positions.min() <= positions.max() < len(run.tokens):
            raise BadRunFile(f"The run file's {method.method!r} has {name} outside the prompt.")
    for name, values in (("ranking", method.ranking), ("scores", method.scores)):
        if values is not None and values.shape != (run.num_doc_tokens,):
            raise BadRunFile(f"The run file's {method.method!r} has {name} of {values.shape}; {run.num_doc_tokens} are needed.")
    if method.kv_distance is not None and method.kv_distance.shape != (run.num_layers, 2):
        shape = method.kv_distance.shape
        raise BadRunFile(f"The run file's {method.method!r} has KV distances of {shape}; [{run.num_layers}, 2] are needed.")
