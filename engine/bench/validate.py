"""Reads samples as the benchmarks do and says what is odd about them, before anything is measured."""

import argparse
from collections.abc import Callable

from engine.bench.data import Packing, Sample, load_set, set_names
from engine.bench.data.check import data_report
from engine.bench.report import print_json
from engine.errors import BadRequest
from engine.model.prompt import PromptBuilder
from engine.runtime import load_runtime
from engine.settings import Settings


def main(argv: list[str]) -> dict[str, object]:
    """Prints and returns the report. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench validate", description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="scenarios", help=f"{', '.join(set_names())}, or the path of a JSONL file")
    parser.add_argument("--n", type=int, help="number of samples; all of a file otherwise, 20 of a generated set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="also count samples beyond the context of this model: bundled, a hub id or a local path")
    parser.add_argument("--max-new-tokens", type=int, default=24, help="room for the answer, with --model")
    parser.add_argument(
        "--pack-tokens", type=int, default=0, help="join short passages to this many tokens of --model, not to 120-300 words"
    )
    args = parser.parse_args(argv)
    if args.pack_tokens and not args.model:
        raise BadRequest("--pack-tokens counts a model's tokens; name the model with --model.")
    prompts = load_runtime(args.model, Settings.from_env()).prompts if args.model else None
    packing = token_packing(args.pack_tokens, prompts)
    found = load_set(args.data, args.n, args.seed, skip_bad=True, packing=packing)
    reason_of = None if prompts is None else beyond_context(prompts, args.max_new_tokens)
    report = {"bench": "validate", "data": args.data, **data_report(found.samples, found.bad_lines, reason_of)}
    print_json(report)
    return report


def token_packing(num_tokens: int, prompts: PromptBuilder | None) -> Packing:
    """Returns the packing to `num_tokens` of the model behind `prompts`, that to 120-300 words where it is 0. Raises BadRequest."""
    if prompts is None or not num_tokens:
        return Packing()
    return Packing.of_tokens(num_tokens, lambda text: len(prompts.tokenize(text)))


def beyond_context(prompts: PromptBuilder, max_new_tokens: int) -> Callable[[Sample], str | None]:
    """Returns a function that gives the sentence why a sample does not fit the model's context, None where it fits."""

    def reason_of(sample: Sample) -> str | None:
        try:
            prompts.build([prompts.chunk(chunk) for chunk in sample.chunks], sample.question, max_new_tokens)
        except BadRequest as error:
            return str(error)
        return None

    return reason_of
