"""`python -m engine.prefix.train_predictor`: trains the session predictor of a model and files it with its card.

Every prompt of every conversation is one sample; conversations are parted into training, stopping and held-out ones. An entry point:
it composes the engine as app.py does, and nothing imports it.
"""

import argparse
import datetime
import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch

from engine.bench.report import print_json, print_table
from engine.errors import BadRequest, EngineError
from engine.prefix.predictor import COMMAND, FOLDER, LearnedPredictor, PredictorCard, save_predictor
from engine.prefix.predictor_data import (
    Conversation,
    StateReader,
    chitchat_conversations,
    joined,
    read_conversations,
    told_conversations,
)
from engine.prefix.predictor_scores import baseline_accuracy, ends, resampled
from engine.prefix.predictor_train import Samples, Trained, predictions_per_s, train
from engine.prefix.roles import ChatFormat
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings

TOLD, CHITCHAT = "sessions", "chitchat"
DATA_HELP = f"comma-separated: {TOLD} (the live run's scripts), {CHITCHAT} (pip install chitchat-dataset), files of conversations"
LICENCES = {TOLD: "the scripts' Apache-2.0", CHITCHAT: "chitchat-dataset's MIT"}


class About(NamedTuple):
    """What a card tells of the samples: what they are, under which licences, and the command that read them."""

    data: str
    licences: str
    command: str


def main(argv: list[str] | None = None) -> int:
    """Trains and files a predictor; returns 0, or 2 with one sentence where the call or its data is at fault."""
    args = _parser().parse_args(argv)
    try:
        if args.max_tokens < 1 or args.turns < 0:
            raise BadRequest(f"--max-tokens is {args.max_tokens}, --turns {args.turns}; give 1 and 0 at least.")
        sources = args.data.split(",")
        nums = parse_nums(args.n, len(sources))
        settings = Settings.from_env()
        runtime = load_runtime(args.model or settings.model, settings)
        told = chain.from_iterable(islice(_conversations(data, num, args.seed), num) for data, num in zip(sources, nums, strict=True))
        samples = read_samples(runtime, told, sum(nums), args.max_tokens, args.turns)
        command = shlex.join(COMMAND.split() + (sys.argv[1:] if argv is None else argv))
        about = About(_described(sources, nums, args.turns, args.max_tokens), _licences(sources), command)
        predictor = trained(runtime, samples, about, args.seed)
        path = save_predictor(predictor, args.out or settings.cache_dir / FOLDER)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    card = predictor.card
    if not args.json:
        names = ("", "accuracy", "MCC", "calibration error", "Brier")
        rows = [
            ("network", card.accuracy, card.mcc, card.calibration_error, card.brier),
            ("logistic rule", card.rule_accuracy, card.rule_mcc, card.rule_calibration_error, card.rule_brier),
            ("always the more frequent", card.baseline_accuracy, 0.0, None, card.baseline_brier),
        ]
        print_table(names, [(name, *("-" if value is None else f"{value:.3f}" for value in values)) for name, *values in rows])
        print(told_of(card))
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


def trained(runtime: Runtime, samples: Samples, about: About, seed: int) -> LearnedPredictor:
    """Returns a predictor trained on samples, with its card. Raises BadRequest."""
    spec = runtime.model.spec
    done = train(samples, seed, _tell)
    learning, _, testing = done.parts
    prior = float(learning.goes_on.float().mean())
    own, rule = done.test, done.rule
    card = PredictorCard(
        model=spec.name,
        revision=spec.revision,
        data=about.data,
        licences=about.licences,
        command=about.command,
        num_conversations=tuple(int(part.conversation.unique().numel()) for part in done.parts),
        num_samples=tuple(part.num for part in done.parts),
        prior=prior,
        accuracy=own.accuracy,
        f1=own.f1,
        mcc=own.mcc,
        calibration_error=own.calibration_error,
        brier=own.brier,
        baseline_accuracy=baseline_accuracy(testing.goes_on),
        baseline_brier=float(((testing.goes_on - prior) ** 2).mean()),
        rule_accuracy=rule.accuracy,
        rule_mcc=rule.mcc,
        rule_calibration_error=rule.calibration_error,
        rule_brier=rule.brier,
        intervals=intervals(done),
        predictions_per_s=predictions_per_s(done.mlp, testing.hidden),
        num_epochs=done.num_epochs,
        seed=seed,
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return LearnedPredictor(done.mlp, card, torch.device("cpu"))


def intervals(done: Trained) -> dict[str, tuple[float, float]]:
    """Returns the 95 % intervals of what network and rule are worth held out, and of their difference, over conversations."""
    testing = done.parts[2]
    own, rule = (resampled(testing.goes_on, said, testing.conversation) for said in (done.said, done.by_rule))
    found = {}
    for name, ours, theirs in zip(own._fields, own, rule, strict=True):
        found |= {name: ends(ours), f"rule_{name}": ends(theirs), f"{name}_minus_rule": ends(ours - theirs)}
    return found


def told_of(card: PredictorCard) -> str:
    """Returns a sentence on whether the network is worth using instead of the rule."""
    low, high = card.intervals["brier_minus_rule"]
    verdict = "better" if card.beats_rule else "not shown to be better"
    return (
        f"Held out, the network is {verdict} than the logistic rule: its Brier score differs by {card.brier - card.rule_brier:+.3f} "
        f"[{low:+.3f}, {high:+.3f}] over {card.num_conversations[2]:,} conversations."
    )


def parse_nums(text: str, num: int) -> list[int]:
    """Returns how many conversations are read of each of `num` sources. Raises BadRequest."""
    parts = text.split(",")
    if len(parts) not in (1, num) or not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise BadRequest(f"--n is {text!r}; give a number of conversations of at least 1, or one for each of {num} sources, as 400,1000.")
    return [int(part) for part in parts * (num if len(parts) == 1 else 1)]


def _conversations(data: str, num: int, seed: int) -> Iterator[Conversation]:
    if data == TOLD:
        return told_conversations(num, seed)
    if data == CHITCHAT:
        return chitchat_conversations()
    path = Path(data)
    if not path.is_file():
        raise BadRequest(f"--data is {data!r}; give {TOLD}, {CHITCHAT} or the path of a file of conversations, one JSON object a line.")
    return (conversation._replace(name=f"{data} {conversation.name}") for conversation in read_conversations(path))


def _described(sources: Sequence[str], nums: Sequence[int], max_turns: int, max_tokens: int) -> str:
    parts = [
        f"{num} scripted sessions, parted by script" if one == TOLD else f"{Path(one).stem}, {num:,} conversations"
        for one, num in zip(sources, nums, strict=True)
    ]
    first = f"the first {max_turns} prompts of each" if max_turns else "all prompts"
    return f"{' and '.join(parts)} ({first}, up to {max_tokens:,} tokens)"


def _licences(sources: Sequence[str]) -> str:
    return ", ".join(LICENCES.get(one, f"that of {Path(one).name} is its owner's") for one in sources)


def _tell(epoch: int, loss: float) -> bool:
    print(f"epoch {epoch}: log loss {loss:.4f} on the stopping conversations", file=sys.stderr)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Train the session predictor.")
    parser.add_argument("--model", help="as FUSESCOPE_MODEL")
    parser.add_argument("--data", default=TOLD, help=DATA_HELP)
    parser.add_argument("--n", default="200", help="number of conversations of each, or one number for each, comma-separated")
    parser.add_argument("--max-tokens", type=int, default=768, help="longer prompts are left out")
    parser.add_argument("--turns", type=int, default=0, help="prompts of each conversation that count, from its first on; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder of the weights; the cache folder otherwise")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
