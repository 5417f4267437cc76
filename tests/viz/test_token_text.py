"""The token text carries every token once with its state."""

import json
from dataclasses import replace

import numpy as np
from fake_runs import example_request, fake_run

from viz.figures.token_text import ANCHOR, ANSWER, RECOMPUTED, token_text_data, token_text_info

RUN = fake_run(example_request())


def test_every_document_token_is_there_with_its_flags():
    info, method = token_text_info(RUN, "qcfuse"), RUN.method("qcfuse")
    flags = np.concatenate([chunk.flags for chunk in info.chunks])
    text = "".join(token for chunk in info.chunks for token in chunk.tokens)
    assert text == "".join(RUN.tokens[RUN.system_len : RUN.question_start])
    doc = np.arange(RUN.system_len, RUN.question_start)
    assert (flags & RECOMPUTED > 0).tolist() == np.isin(doc, method.rows).tolist()
    assert (flags & ANCHOR > 0).tolist() == np.isin(doc, method.anchors[-1]).tolist()
    (start, stop) = RUN.answer_spans[0]
    assert (flags & ANSWER > 0).tolist() == ((doc >= start) & (doc < stop)).tolist()
    assert sum(chunk.num_recomputed for chunk in info.chunks) == (flags & RECOMPUTED > 0).sum()


def test_ranks_count_from_one_in_document_order():
    info, method = token_text_info(RUN, "qcfuse"), RUN.method("qcfuse")
    assert info.ranks[method.ranking[0] - RUN.system_len] == 1 and sorted(info.ranks) == list(range(1, RUN.num_doc_tokens + 1))


def test_a_giant_token_is_cut_and_the_data_is_json():
    tokens = list(RUN.tokens)
    tokens[RUN.system_len + 3] = "x" * 200_000
    data = token_text_data(token_text_info(replace(RUN, tokens=tuple(tokens)), "qcfuse"))
    assert len(json.dumps(data)) < 200_000 and "…" in data["chunks"][0]["tokens"][3]


def test_a_method_that_is_not_there_gives_a_reason():
    assert token_text_data(token_text_info(RUN, "nope"), "No run yet.") == {"reason": "No run yet.", "chunks": []}
