"""Two runs that differ in the question alone, as values to show. Knows nothing of Gradio."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import plotly.graph_objects as go

from engine.errors import BadRequest
from engine.scenarios import Scenario
from engine.types import Chunk, FusionRequest, MethodRun, Run
from viz import theme
from viz.figures import words
from viz.figures.question_flip import COLORS, QuestionFlipInfo, question_flip_figure, question_flip_info, same_documents
from viz.panels.contract import SessionLike
from viz.panels.tables import quality_facts
from viz.panels.verdict import num_recomputed

EMPTY = "Pick or type a second question and press Compare: the same method runs over the same chunks."
CARD_COLORS = (COLORS[0], COLORS[2])


@dataclass(frozen=True, slots=True)
class FlipJob:
    """Two questions to one method over the same chunks. `request_a` is None where the built-in engine has run the method already."""

    method: str
    request_a: FusionRequest | None
    request_b: FusionRequest


class FlipPair(NamedTuple):
    """The runs of question A and question B."""

    method: str
    a: Run
    b: Run

    def is_about(self, run: Run) -> bool:
        """Returns whether a run is over the same chunks."""
        return [chunk.cache_hash for chunk in run.chunks] == [chunk.cache_hash for chunk in self.a.chunks]


class FlipView(NamedTuple):
    """What the comparison of two questions shows."""

    note: str
    figure: go.Figure
    cards: dict[str, Any] | None
    chunks: dict[str, Any] | None


def flip_job(run: Run | None, question: Any, method: Any, session: SessionLike) -> FlipJob:
    """Returns what to run for a second question beside the shown run. Raises BadRequest, UnknownName with one sentence."""
    if run is None:
        raise BadRequest("No run is shown yet; press Run first.")
    if method not in session.method_names():
        raise BadRequest("No method is chosen for the second question; pick one.")
    asked = question.strip() if isinstance(question, str) else ""
    if asked == run.question.strip():
        raise BadRequest("Both questions are the same; pick or type another one.")
    if not run.scenario:
        raise BadRequest("The shown run belongs to no scenario, so its texts are not at hand; press Run, then compare.")
    scenario = session.scenario(run.scenario)
    request_b = _request(run, scenario, asked)
    is_there = run.method(method) is not None and run.provenance.served_by is None
    return FlipJob(method, None if is_there else _request(run, scenario, run.question), request_b)


def _request(run: Run, scenario: Scenario, question: str) -> FusionRequest:
    """Returns a question over the chunks of a run, in its order and with its settings."""
    return scenario.request(
        question,
        chunks=_chunks(run, scenario),
        ratio=run.ratio,
        max_new_tokens=run.max_new_tokens,
        temperature=run.temperature,
        seed=run.seed,
        chunk_context=run.chunk_context,
        repeats=1,
    )


def _chunks(run: Run, scenario: Scenario) -> tuple[Chunk, ...]:
    texts = {chunk.chunk_id: chunk for chunk in scenario.chunks()}
    if any(chunk.chunk_id not in texts for chunk in run.chunks):
        raise BadRequest("The shown run has chunks that its scenario does not have; press Run, then compare.")
    return tuple(texts[chunk.chunk_id] for chunk in run.chunks)


def flip_pair(method: str, run_a: Run, run_b: Run) -> FlipPair:
    """Returns the pair. Raises BadRequest where the runs are not over the same tokens by the same model."""
    if not same_documents(run_a, run_b):
        raise BadRequest("The shown run was made by another model or from other texts than are at hand now; press Run, then compare.")
    return FlipPair(method, run_a, run_b)


def next_questions(run: Run | None, current: Any, scenarios: Sequence[Scenario]) -> tuple[list[str], str | None]:
    """Returns the other questions of a run's scenario and the one to put in: a typed one stays."""
    own = next((s for s in scenarios if run and s.name == run.scenario), None)
    questions = [q.question for q in own.questions if run and q.question != run.question] if own else []
    typed = isinstance(current, str) and current.strip() and not any(s.question(current) for s in scenarios)
    return questions, current if typed or current in questions else next(iter(questions), None)


def flip_view(pair: FlipPair | None) -> FlipView:
    """Returns the strips, the two answers and the counts by chunk."""
    info = question_flip_info(pair.a, pair.b, pair.method) if pair else None
    if pair is None or info is None:
        return FlipView("", question_flip_figure(None, EMPTY), None, None)
    cards = [_card(name, run, run.method(pair.method), color) for name, run, color in zip("AB", pair[1:], CARD_COLORS, strict=True)]
    return FlipView(
        note=flip_note(pair, info),
        figure=question_flip_figure(info),
        cards={"cards": cards, "gold": "", "reason": "", "help": []},
        chunks=_by_chunk(pair.a, info),
    )


def flip_note(pair: FlipPair, info: QuestionFlipInfo) -> str:
    """Returns what changed, in a sentence, and where the two runs come from."""
    only_a, both, only_b = info.num_by_group
    name, (a, b) = theme.method_label(pair.method), pair[1:]
    source = f"A: {a.provenance.mode.upper()}, B: {b.provenance.mode.upper()}, ratio {a.ratio:.2f}."
    if info.jaccard is None:
        return f"{name} recomputes no document token for either question. {source}"
    if not only_a and not only_b:
        blind = "" if _reads_question(a, pair.method) else ": it does not look at the question"
        return f"{name} recomputes the same {both:,} tokens for both questions{blind}. {source}"
    share = words.percent(info.jaccard)
    changed = (
        f"{both:,} tokens are recomputed for both questions ({share} of those in either), {only_a:,} only for A, {only_b:,} only for B."
    )
    return f"{name}: {changed} {source}"


def _reads_question(run: Run, method_name: str) -> bool:
    method = run.method(method_name)
    return method is not None and (bool(method.critical_layers) or method.method == "full")


def _card(name: str, run: Run, method: MethodRun | None, color: str) -> dict[str, Any]:
    assert method is not None, "a pair holds its method twice"
    gold = f"Gold answer: {' / '.join(run.gold_answers)}" if run.gold_answers else "No gold answer is known for this question."
    return {
        "title": f"Question {name}",
        "color": color,
        "question": run.question,
        "time": f"{num_recomputed(run, method):,}",
        "share": theme.method_label(method.method),
        "speed": "tokens recomputed",
        "answer_same": method.answer or "(no answer)",
        "answer_rest": "",
        "same": gold,
        "facts": quality_facts(method),
    }


def _by_chunk(run: Run, info: QuestionFlipInfo) -> dict[str, Any]:
    rows = []
    for number, chunk in enumerate(run.chunks, start=1):
        own = info.groups[:, chunk.start - run.system_len : chunk.stop - run.system_len]
        only_a, both, only_b = own.sum(axis=1).tolist()
        size = max(1, chunk.stop - chunk.start)
        shares = [words.percent((only_a + both) / size), words.percent((both + only_b) / size)]
        rows.append([f"{number} {words.shorten(chunk.title, 60)}", *shares, f"{only_a:,}", f"{both:,}", f"{only_b:,}"])
    columns = ["Chunk", "Recomputed for A", "Recomputed for B", "Only for A", "For both", "Only for B"]
    return {"caption": "By chunk", "columns": columns, "rows": rows, "reason": "", "note": ""}
