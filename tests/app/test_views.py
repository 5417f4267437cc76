"""The words and tables of the page say what the run holds, also where our method loses."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import ALL_METHODS, example_request, fake_run

from engine.types import Status, budget
from viz import theme
from viz.figures.bins import selective_masks
from viz.panels.fuse_view import at_ratio, finished, first_method, method_view, preview_note, progress, run_view
from viz.panels.tables import answer_cards, break_even, counts_table, one_off_cost, saved_seconds, top_tokens
from viz.panels.verdict import banner, provenance_line, ranking_line, verdict

RUN = fake_run(example_request(repeats=3))
MANY = fake_run(example_request(repeats=3), ALL_METHODS)


def with_quality(name: str, **changes: object):
    """Returns the run with one method's quality changed."""
    method = RUN.method(name)
    other = replace(method, quality=replace(method.quality, **changes))
    return replace(RUN, methods=tuple(other if m.method == name else m for m in RUN.methods))


def test_verdict_of_a_win():
    text = verdict(RUN)
    assert text.startswith(f"QCFuse recomputed 30 % of {RUN.num_doc_tokens:,} document tokens: first token after 0.")
    assert "× faster)" in text and text.endswith("ROUGE-L 1.00 vs 1.00.")


def test_verdict_says_slower_worse_and_undecided():
    slow = fake_run(example_request(repeats=3), slow=6.0)
    assert "× slower)" in verdict(slow)
    assert verdict(with_quality("qcfuse", rouge_l=0.4)).endswith("ROUGE-L 0.40 vs 1.00 (worse).")
    same = replace(RUN.method("qcfuse"), ttft_repeats_s=RUN.method("full").ttft_repeats_s)
    assert "spreads overlap" in verdict(replace(RUN, methods=(RUN.method("full"), same)))


def test_verdict_without_gold_answer_or_full_prefill():
    nothing = {"rouge_l": None, "f1": None, "gold_nll": None}
    assert "KL to full prefill" in verdict(with_quality("qcfuse", **nothing))
    assert "instead of" not in verdict(replace(RUN, methods=(RUN.method("qcfuse"),)))
    assert verdict(replace(RUN, methods=(RUN.method("full"),))).startswith("Full prefill recomputed 100 %")
    assert verdict(replace(RUN, methods=())) == "The run holds no method."


def test_badge_names_mode_model_device_date_and_repeats():
    data = banner(RUN)
    assert (data["kind"], data["badge"]) == ("live", "LIVE")
    line = provenance_line(RUN)
    assert line == "SmolLM2-135M-Instruct · float32 · Test CPU · 2 threads · disk 1,840 MB/s · 2026-11-29 · median of 3"
    assert banner(None)["verdict"].startswith("No run yet")


def test_cards_compare_with_full_prefill():
    cards = {card["title"]: card for card in answer_cards(RUN)["cards"]}
    assert cards["QCFuse"]["same"].startswith("Same answer") and cards["QCFuse"]["answer_rest"] == ""
    assert "from answer token 2 on" in cards["Direct reuse"]["same"]
    assert cards["Direct reuse"]["answer_same"] + cards["Direct reuse"]["answer_rest"] == RUN.method("reuse").answer
    assert dict((name, value) for name, value, _ in cards["QCFuse"]["facts"])["ROUGE-L"] == "1.00"


def test_counts_equal_the_run():
    table = counts_table(RUN)
    rows = {row[0]: row[1:] for row in table["rows"]}
    num = budget(RUN.ratio, RUN.num_doc_tokens)
    assert table["columns"][1:] == ["Full prefill", "Direct reuse", "QCFuse"]
    assert rows["Document tokens recomputed"][2].startswith(f"{num:,} of {RUN.num_doc_tokens:,}")
    assert rows["Cache hits (tokens reused)"][2].startswith(f"{RUN.num_doc_tokens - num:,} of")
    assert rows["Question tokens computed"] == [f"{len(RUN.tokens) - RUN.question_start}"] * 3
    assert rows["KV loaded"][0] == "0 B" and rows["Break-even"][0] == "–"
    assert "9 found in the store, 3 computed" in table["note"]


def test_counts_of_many_methods_have_a_row_each():
    table = counts_table(MANY)
    assert len(table["rows"]) == len(ALL_METHODS) and table["columns"][1] == "Time to first token"
    rows = {row[0]: dict(zip(table["columns"][1:], row[1:], strict=True)) for row in table["rows"]}
    assert rows["QCFuse + primed"]["Chunks cached"] == "primed" and rows["Full prefill"]["Chunks cached"] == "–"
    work = {name: float(row["Rows × layers, of full prefill"].split()[0]) for name, row in rows.items()}
    assert work["Full prefill"] == 100 and work["CacheBlend"] == work["QCFuse"] + 2
    assert rows["APE"]["Document tokens recomputed"].startswith("0 of")


def test_a_method_that_wrote_no_answer_says_so():
    silent = replace(RUN.method("qcfuse"), answer="", answer_ids=np.array([], dtype=np.int32))
    cards = answer_cards(replace(RUN, methods=(RUN.method("full"), silent)))["cards"]
    assert "no answer was generated" in cards[1]["answer_rest"] and cards[1]["same"] == "Nothing to compare."


def test_many_methods_are_ranked_in_a_sentence_and_few_are_not():
    line = ranking_line(MANY)
    kls = {m.method: m.quality.kl_to_full for m in MANY.methods if m.method != "full"}
    assert line.startswith(f"Of {len(ALL_METHODS) - 1} methods, closest to full prefill on this question: ") and "spreads overlap" in line
    assert f"{theme.method_label(min(kls, key=kls.get))} (KL {min(kls.values()):.3f})" in line
    assert ranking_line(RUN) == ""


def test_break_even_is_never_where_nothing_is_saved():
    full, ours = RUN.method("full"), RUN.method("qcfuse")
    cost = sum(chunk.precompute_s for chunk in RUN.chunks)
    assert break_even(RUN, ours) == int(np.ceil(cost / (full.ttft_s - ours.ttft_s)))
    slow = replace(ours, ttft_s=full.ttft_s * 2)
    assert break_even(replace(RUN, methods=(full, slow)), slow) is None and saved_seconds(RUN, full) is None


def test_one_off_cost_is_inferred_from_the_chunks_computed_and_never_taken_as_zero():
    found = tuple(replace(chunk, precompute_s=0.0) if i else chunk for i, chunk in enumerate(RUN.chunks))
    some, none = replace(RUN, chunks=found), replace(RUN, chunks=tuple(replace(chunk, precompute_s=0.0) for chunk in RUN.chunks))
    assert one_off_cost(RUN).exact and not one_off_cost(some).exact
    assert one_off_cost(some).seconds == pytest.approx(one_off_cost(RUN).seconds)
    rows = {row[0]: row[1:] for row in counts_table(none)["rows"]}
    assert one_off_cost(none) is None and rows["Break-even"] == ["–"] * 3
    assert rows["One-off cost of the caches"][2].startswith("time not measured")


def test_top_tokens_are_the_text_twin_of_the_map():
    table, method = top_tokens(RUN, "qcfuse"), RUN.method("qcfuse")
    assert len(table["rows"]) == 20 and table["rows"][0][3] == f"{method.ranking[0]:,}" and table["rows"][0][5] == "yes"
    assert "does not rank" in top_tokens(RUN, "reuse")["reason"]
    blind = top_tokens(MANY, "epic")
    assert {row[4] for row in blind["rows"]} == {"–"} and "does not look at the question" in blind["note"]
    masks = selective_masks(MANY)
    also = sum(mask[blind_position(blind) - MANY.system_len] for name, mask in masks.items() if name != "epic")
    assert blind["rows"][0][6] == f"{also} of {len(masks) - 1}"


def blind_position(table):
    """Returns the position of a table's first token."""
    return int(table["rows"][0][3].replace(",", ""))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("epic", "does not look at the question"),
        ("full", "computes every token"),
        ("reuse", "recomputes no document token"),
        ("ape", "no document"),
    ],
)
def test_methods_without_scores_say_why(method, words):
    assert words in method_view(MANY, method).attention.layout.annotations[0].text.replace("<br>", " ")


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.3, 0.77, 1.0])
def test_preview_ratio_shows_the_exact_set_and_keeps_the_run(ratio):
    shown = at_ratio(RUN, ratio)
    rows = shown.method("qcfuse").rows
    want = np.sort(RUN.method("qcfuse").ranking[: budget(ratio, RUN.num_doc_tokens)])
    assert rows[rows < RUN.question_start].tolist() == want.tolist()
    assert (rows >= RUN.question_start).sum() == len(RUN.tokens) - RUN.question_start
    assert shown.method("full") is RUN.method("full")
    method_view(RUN, "qcfuse", ratio)


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.9])
def test_preview_ratio_holds_for_every_method_that_ranks(ratio):
    shown, num = at_ratio(MANY, ratio), budget(ratio, MANY.num_doc_tokens)
    for before, after in zip(MANY.methods, shown.methods, strict=True):
        picked = after.rows[(after.rows >= MANY.system_len) & (after.rows < MANY.question_start)]
        if before.ranking is None:
            assert after is before
        else:
            assert set(picked.tolist()) == set(before.ranking[:num].tolist())
        if after.layer_rows is not None:
            assert after.layer_rows[0] == len(MANY.tokens) and set(after.layer_rows[1:].tolist()) == {len(after.rows)}


def test_preview_note_tells_measured_from_previewed():
    assert preview_note(RUN, "qcfuse", 0.3).startswith("This is the set that was run")
    assert "Times and answers are those measured at ratio 0.30" in preview_note(RUN, "qcfuse", 0.5)
    assert "no ranking" in preview_note(RUN, "full", 0.5) and preview_note(None, "full", 0.5) == ""


def test_every_view_exists_without_a_run():
    assert run_view(None).cards["reason"] and method_view(None, "qcfuse").text["reason"]
    assert first_method(None) == "qcfuse" and first_method(RUN, "reuse") == "reuse" and first_method(RUN, "epic") == "qcfuse"


def test_status_lines():
    waiting = progress(Status("Waiting", 0.0, 2))
    assert waiting["message"].startswith("Waiting: 2 requests ahead") and waiting["kind"] == "busy"
    running = progress(Status("qcfuse: prefill 1 of 3", float("nan"), 0, {"qcfuse": "It"}))
    assert running["message"] == "QCFuse: prefill 1 of 3" and running["fraction"] == 0.0 and running["answers"] == [("QCFuse", "It")]
    assert "measured just now" in finished(RUN)["message"]
