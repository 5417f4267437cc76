"""From a conversation to what the Chat tab shows of it. Knows nothing of Gradio."""

import re
from collections.abc import Mapping
from typing import Any

from engine.chat.types import ChatRequest, ChatTurn, PrefixStats, Source
from engine.library.types import Found
from engine.scenarios import Scenario
from engine.types import Provenance
from viz import theme
from viz.figures import words
from viz.panels.chat_talk import Ask, Entry, Talk

# Every source has a hatch beside its colour; the names are those of assets/chat/chat.css.
SOURCES: Mapping[Source, theme.BandStyle] = {
    "prefix hit": theme.BandStyle("prefix cache hits", theme.GREEN, "plain"),
    "prefix computed": theme.BandStyle("prefix computed", theme.GREY, "lines"),
    "chunk loaded": theme.BandStyle("chunk KV loaded", theme.STATE_COLORS["loaded"], "bars"),
    "chunk recomputed": theme.BandStyle("chunk recomputed", theme.STATE_COLORS["recomputed"], "diagonal"),
    "question": theme.BandStyle("question", theme.STATE_COLORS["question"], "dots"),
}
KV_WORDS = {"disk": "KV from disk", "memory": "KV from memory", "computed": "KV computed now"}
CITED_HELP = "A rule about words: the answer and the chunk share a run of tokens. It does not say what the model attended to."
STOPPED = "Stopped. This turn is not part of the conversation; press Retry to ask again."
NAME_CHARS, MAX_NAMES = 60, 8
STEPS = (
    "Pick a library under “Ask about”, or drop a PDF, a Word file, a web page or a text there.",
    "Ask in the box below. The chunks that fit are found and their stored KV is loaded instead of computed.",
    "Every answer tells how soon it began and where the KV of each token came from.",
)


def thread_data(talk: Talk, offer: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the conversation, or what is offered while there is none."""
    turns = [_turn(entry) for entry in talk.entries]
    return {"turns": turns, "editing": talk.editing, "offer": None if turns else offer, "cited_help": CITED_HELP}


def offer_data(title: str, scenario: Scenario | None) -> dict[str, Any]:
    """Returns what an empty conversation says: what to do, and questions that the library can answer."""
    questions = [question.question for question in scenario.questions[:4]] if scenario else []
    return {
        "title": f"Ask “{words.shorten(title, 80)}” anything",
        "steps": STEPS,
        "questions": questions,
        "questions_title": "Or press one of these:",
    }


def live_data(ask: Ask, answer: str = "", message: str = "", fraction: float = 0.0) -> dict[str, Any]:
    """Returns the question that is being answered."""
    titles = [words.shorten(one.chunk.title or one.info.document, 60) for one in ask.found]
    return {
        "question": ask.request.question,
        "mode": mode_words(ask.request),
        "answer": answer,
        "message": message,
        "fraction": fraction,
        "sources": f"Retrieved{_searched_in(ask)}: {'; '.join(titles)}." if titles else " ".join(ask.notices),
    }


def mode_words(request: ChatRequest) -> str:
    """Returns how a question was or is to be answered: 'QCFuse, ratio 0.30'."""
    label = theme.method_label(request.method)
    return label if theme.method_family(request.method) in ("full", "reuse", "ape") else f"{label}, ratio {request.ratio:.2f}"


def editing_words(talk: Talk) -> str:
    """Returns what sending an edited question does; '' where none is edited."""
    if talk.editing is None:
        return ""
    num = len(talk.entries) - talk.editing - 1
    gone = "" if num == 0 else f" and the {'turn' if num == 1 else f'{num} turns'} behind it"
    return f"Editing question {talk.editing + 1}: sending it drops its answer{gone}. Empty the box and send to leave it as it was."


def prefix_words(stats: PrefixStats | None) -> str:
    """Returns one line on the prefix cache that all conversations share."""
    if stats is None:
        return "Earlier turns are read from the prefix cache, retrieved chunks from the chunk store; what is not there is computed."
    used = stats.capacity_blocks - stats.num_free
    asked, gone = stats.num_hit_tokens + stats.num_computed_tokens, sum(stats.evicted.values())
    share = words.percent(stats.num_hit_tokens / asked) if asked else "none"
    return (
        f"Prefix cache ({theme.policy_style(stats.policy).label}): {used:,} of {stats.capacity_blocks:,} blocks of "
        f"{stats.block_tokens} tokens in use, {words.size(stats.size_bytes)}; "
        f"{stats.num_hit_tokens:,} of {asked:,} prefix tokens asked for were there ({share}); "
        f"{gone:,} block{'' if gone == 1 else 's'} evicted so far."
    )


def _turn(entry: Entry) -> dict[str, Any]:
    turn, request = entry.turn, entry.ask.request
    cited = {citation.chunk_id for citation in turn.citations} if turn else set()
    return {
        "question": entry.question,
        "state": entry.outcome,
        "mode": mode_words(request),
        "badge": turn.provenance.mode.upper() if turn else "",
        "answer": entry.answer,
        "message": entry.message,
        "ttft": words.seconds(turn.ttft_s) if turn else "",
        "times": time_words(turn) if turn else "",
        "parts": source_parts(turn) if turn else [],
        "sources": [_source(one, i, cited, turn) for i, one in enumerate(entry.ask.found)],
        "sources_title": _sources_title(entry),
        "searched": _searched_names(entry.ask),
        "notices": [*entry.ask.notices, *(turn.notices if turn else ()), *_cut(turn)],
        "compared": compared_data(entry),
        "can_compare": turn is not None and request.method != "full" and bool(request.chunks) and entry.compared is None,
        "has_run": entry.details is not None and entry.details.run is not None,
        "no_run": "Nothing was fused, so there is nothing to look at." if not request.chunks else "Only the newest runs are kept.",
        "details": _machine(turn.provenance) if turn else "",
    }


def _cut(turn: ChatTurn | None) -> list[str]:
    """Returns a sentence on an answer that its length cut off."""
    if turn is None or turn.finish != "length":
        return []
    return [f"The answer ends at {turn.num_answer_tokens:,} tokens, the length that is set; more are allowed above the conversation."]


def source_parts(turn: ChatTurn) -> list[dict[str, Any]]:
    """Returns how many prompt tokens came from where; sources that gave none are left out."""
    counts: dict[Source, int] = {
        "prefix hit": turn.num_prefix_hits,
        "prefix computed": turn.num_prefix_computed,
        "chunk loaded": turn.num_fused_loaded,
        "chunk recomputed": turn.num_recomputed,
        "question": turn.num_question,
    }
    styles = {source: SOURCES[source] for source, num in counts.items() if num}
    return [{"label": style.label, "color": style.color, "hatch": style.hatch, "num": counts[source]} for source, style in styles.items()]


def time_words(turn: ChatTurn) -> str:
    """Returns what the time to the first token consists of."""
    parts = turn.parts_s
    named = {
        "loading the cached prefix": parts.prefix_load,
        "computing the rest of the prefix": parts.prefix_compute,
        "probing": parts.probe,
        "choosing tokens": parts.select,
        "waiting for chunks": parts.load_wait,
        "recomputing": parts.recompute,
        "first token": parts.head,
    }
    return "Time to first token: " + ", ".join(f"{name} {words.seconds(value)}" for name, value in named.items() if value > 0) + "."


def compared_data(entry: Entry) -> dict[str, str] | None:
    """Returns how the method did beside full prefill over the same tokens, measured one after the other; None before that."""
    turn = entry.compared
    full, method = (turn.full, turn.run.method(turn.method)) if turn is not None and turn.run is not None else (None, None)
    if full is None or method is None or method.ttft_s <= 0 or full.ttft_s <= 0:
        return None
    label, same = theme.method_label(method.method), full.answer == method.answer
    factor = full.ttft_s / method.ttft_s
    faster = f"{words.times(factor)} faster" if factor >= 1 else f"{words.times(1 / factor)} slower"
    text = "Both give the same text." if same else "The texts differ."
    return {
        "verdict": f"{label} is {faster} than full prefill here.",
        "text": f"First token after {words.seconds(method.ttft_s)} instead of {words.seconds(full.ttft_s)}, measured once each, "
        f"one after the other behind the same cached prefix. {text}",
        "answer": "" if same else full.answer,
    }


def _source(found: Found, index: int, cited: set[str], turn: ChatTurn | None) -> dict[str, Any]:
    info, chunk = found.info, found.chunk
    where = next((one for one in turn.run.chunks if one.chunk_id == chunk.chunk_id), None) if turn is not None and turn.run else None
    facts = [
        _relevance(chunk.relevance),
        info.place,
        f"{where.stop - where.start:,} tokens" if where else "",
        KV_WORDS[where.source] if where else "",
    ]
    return {
        "number": index + 1,
        "id": chunk.chunk_id,
        "title": chunk.title or info.document,
        "facts": " · ".join(filter(None, facts)),
        "cited": chunk.chunk_id in cited,
    }


def _relevance(share: float | None) -> str:
    if share is None:
        return ""
    return f"relevance {words.percent(share)}" if share >= 0.01 else "relevance below 1 %"


def _sources_title(entry: Entry) -> str:
    num = len(entry.ask.found)
    return f"{num} chunk{'' if num == 1 else 's'} retrieved{_searched_in(entry.ask)}, most relevant first"


def _searched_in(ask: Ask) -> str:
    """Returns ' from 2 of 5 documents' where documents were left out of the search."""
    return f" from {ask.scope.words}" if ask.scope is not None and ask.scope.is_part else ""


def _searched_names(ask: Ask) -> str:
    """Returns the documents that were searched, where others were left out."""
    if ask.scope is None or not ask.scope.is_part:
        return ""
    names = [words.shorten(name, NAME_CHARS) for _, name in ask.scope.documents[:MAX_NAMES]]
    more = len(ask.scope.documents) - len(names)
    return f"Searched: {'; '.join(names)}{f'; and {more:,} more' if more else ''} (the others were not ticked)."


def _machine(provenance: Provenance) -> str:
    """Returns model, precision and device of a turn."""
    device = re.sub(r"\((R|TM)\)", "", provenance.device)
    return f"{provenance.model} · {provenance.dtype} · {device}, {provenance.num_threads} threads · measured once"
