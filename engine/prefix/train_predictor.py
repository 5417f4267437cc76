"""`python -m engine.prefix.train_predictor`: trains the session predictor of a model and files it with its card.

Every prompt of every conversation is one sample; conversations are parted into training, stopping and held-out ones. An entry point:
it composes the engine as app.py does, and nothing imports it.
"""

import argparse
import datetime
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import msgspec
import torch

from engine.bench.report import print_json, print_table
from engine.errors import BadRequest, EngineError
from engine.prefix.predictor import FOLDER, LearnedPredictor, PredictorCard, save_predictor
from engine.prefix.predictor_data import Conversation, StateReader, joined, read_conversations, told_conversations
from engine.prefix.predictor_scores import Scores, baseline_accuracy
from engine.prefix.predictor_train import Samples, predictions_per_s, train
from engine.prefix.roles import ChatFormat
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings

TOLD = "sessions"


def main(argv: list[str] | None = None) -> int:
    """Trains and files a predictor; returns 0, or 2 with one sentence where the call or its data is at fault."""
    args = _parser().parse_args(argv)
    try:
        if args.n < 1 or args.max_tokens < 1 or args.turns < 0:
            raise BadRequest(f"--n is {args.n}, --max-tokens {args.max_tokens}, --turns {args.turns}; give 1, 1 and 0 at least.")
        settings = Settings.from_env()
        runtime = load_runtime(args.model or settings.model, settings)
        sources = args.data.split(",")
        told = chain.from_iterable(islice(_conversations(data, args.n, args.seed), args.n) for data in sources)
        samples = read_samples(runtime, told, args.n * len(sources), args.max_tokens, args.turns)
        predictor = trained(runtime, samples, _described(sources, args.n, args.turns, args.max_tokens), args.seed)
        path = save_predictor(predictor, args.out or settings.cache_dir / FOLDER)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    card = predictor.card
    if not args.json:
        names = ("accuracy", "logistic rule", "always the more frequent", "F1", "MCC", "calibration error", "predictions/s")
        values = (card.accuracy, card.rule_accuracy, card.baseline_accuracy, card.f1, card.mcc, card.calibration_error)
        print_table(names, [(*(f"{value:.3f}" for value in values), f"{card.predictions_per_s:,.0f}")])
        print(f"written to {path}")
    print_json({"train": "predictor", "path": str(path), "card": msgspec.to_builtins(card)})
    return 0


def read_samples(runtime: Runtime, conversations: Iterator[Conversation], num: int, max_tokens: int, max_turns: int = 0) -> Samples:
    """Returns the samples of conversations; those of one name count as one. Raises BadRequest. Says on stderr how far it is."""
    chat = ChatFormat(runtime.model.tokenizer, lambda text, special: runtime.prompts.tokenize(text, special).ids)
    reader, numbers, parts = StateReader(runtime.decoder, chat, max_tokens, max_turns), {}, []
    for count, conversation in enumerate(conversations, start=1):
        parts.append(reader.samples(conversation, numbers.setdefault(conversation.name, len(numbers))))
        if count % 25 == 0:
            print(f"{count} of {num} conversations read", file=sys.stderr)
    if not parts:
        raise BadRequest("The data holds no conversation; choose a file that does.")
    return joined(parts)


def trained(runtime: Runtime, samples: Samples, data: str, seed: int) -> LearnedPredictor:
    """Returns a predictor trained on samples, with its card. Raises BadRequest."""
    spec = runtime.model.spec
    done = train(samples, seed, _tell)
    learning, _, testing = done.parts
    card = PredictorCard(
        model=spec.name,
        revision=spec.revision,
        data=data,
        num_conversations=tuple(int(part.conversation.unique().numel()) for part in done.parts),
        num_samples=tuple(part.num for part in done.parts),
        prior=float(learning.goes_on.float().mean()),
        accuracy=done.test.accuracy,
        f1=done.test.f1,
        mcc=done.test.mcc,
        calibration_error=done.calibration_error,
        baseline_accuracy=baseline_accuracy(testing.goes_on),
        rule_accuracy=done.rule.accuracy,
        rule_mcc=done.rule.mcc,
        predictions_per_s=predictions_per_s(done.mlp, testing.hidden),
        num_epochs=done.num_epochs,
        seed=seed,
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return LearnedPredictor(done.mlp, card, torch.device("cpu"))


def _conversations(data: str, num: int, seed: int) -> Iterator[Conversation]:
    if data == TOLD:
        return told_conversations(num, seed)
    path = Path(data)
    if not path.is_file():
        raise BadRequest(f"--data is {data!r}; give {TOLD} or the path of a file of conversations, one JSON object a line.")
    return (conversation._replace(name=f"{data} {conversation.name}") for conversation in read_conversations(path))


def _described(sources: list[str], num: int, max_turns: int, max_tokens: int) -> str:
    parts = [f"{num} scripted sessions, parted by script" if one == TOLD else f"{Path(one).stem}, {num:,} conversations" for one in sources]
    first = f"the first {max_turns} prompts of each" if max_turns else "all prompts"
    return f"{' and '.join(parts)} ({first}, up to {max_tokens:,} tokens)"


def _tell(epoch: int, found: Scores) -> bool:
    print(f"epoch {epoch}: accuracy {found.accuracy:.3f}, MCC {found.mcc:.3f} on the stopping conversations", file=sys.stderr)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.prefix.train_predictor", description="Train the session predictor.")
    parser.add_argument("--model", help="as FUSESCOPE_MODEL")
    parser.add_argument("--data", default=TOLD, help=f"comma-separated: {TOLD} (the live run's scripts), files of conversations")
    parser.add_argument("--n", type=int, default=200, help="number of conversations of each")
    parser.add_argument("--max-tokens", type=int, default=768, help="longer prompts are left out")
    parser.add_argument("--turns", type=int, default=0, help="prompts of each conversation that count, from its first on; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder of the weights; the cache folder otherwise")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
