"""Readers of logs and generators: what they make of good files, and one sentence with file, line and reason for bad ones."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from prefix_worlds import paths

from engine.errors import BadRequest, Cancelled
from engine.prefix.blocks import TokenType
from engine.prefix.workloads.catalog import load_workload
from engine.prefix.workloads.inference import SessionGuess

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
MOONCAKE = [
    {"timestamp": 0, "input_length": 1300, "output_length": 9, "hash_ids": [1, 2, 3]},
    {"timestamp": 500, "input_length": 600, "output_length": 9, "hash_ids": [1, 9]},
    {"timestamp": 500, "input_length": 1800, "output_length": 9, "hash_ids": [1, 2, 4, 5]},
]


def lines(path, rows, packed=False):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return str(path)


@pytest.mark.parametrize("packed", [False, True])
def test_mooncake(tmp_path, packed):
    workload = load_workload(lines(tmp_path / ("t.jsonl.gz" if packed else "t.jsonl"), MOONCAKE, packed), 0)
    assert workload.block_size == 512 and workload.time_s.tolist() == [0.0, 0.5, 0.5]
    assert paths(workload) == [[0, 1, 2], [0, 3], [0, 1, 4, 5]]
    assert workload.parent.tolist() == [-1, 0, 1, 0, 1, 4] and workload.depth.tolist() == [0, 1, 2, 1, 2, 3]
    # The third repeats two of the first's three blocks, the second a template's one.
    assert workload.session.tolist() == [0, 1, 0] and workload.turn.tolist() == [0, 0, 1]


def test_bailian(tmp_path):
    rows = [
        {
            "chat_id": 5,
            "parent_chat_id": -1,
            "timestamp": 1.5,
            "input_length": 30,
            "output_length": 4,
            "type": "text",
            "turn": 1,
            "hash_ids": [7, 8],
        },
        {
            "chat_id": 6,
            "parent_chat_id": 5,
            "timestamp": 3.0,
            "input_length": 60,
            "output_length": 4,
            "type": "text",
            "turn": 2,
            "hash_ids": [7, 8, 9],
        },
        {
            "chat_id": 8,
            "parent_chat_id": 6,
            "timestamp": 4.0,
            "input_length": 90,
            "output_length": 4,
            "type": "file",
            "turn": 3,
            "hash_ids": [7, 8, 9],
        },
    ]
    workload = load_workload(lines(tmp_path / "qwen_blksz_16.jsonl", rows), 0)
    assert workload.block_size == 16 and workload.session.tolist() == [0, 0, 0] and workload.turn.tolist() == [0, 1, 2]
    rows[2]["chat_id"] = 6
    with pytest.raises(BadRequest, match=r"line 3.*'chat_id' 6 was used"):
        load_workload(lines(tmp_path / "twice.jsonl", rows), 0)
    rows[2] |= {"chat_id": 9, "type": "song"}
    with pytest.raises(BadRequest, match=r"line 3.*'song'"):
        load_workload(lines(tmp_path / "type.jsonl", rows), 0)


def agent_session(**change):
    requests = [
        [0.0, "n", "m", 2048, 100, 0, [[1, 32]], "T", "TU", "tool_use", 0.0, 1.0],
        [9.0, "n", "m", 3072, 100, 30, [[40, 18]], "R", "T", "end_turn", 5.0, 1.0],
        ["sub", 4.0, 64, 64, ["m"], [[0.0, "n", "m", 1024, 10, 0, [[100, 16]], "T", "T", "end_turn", 0.0, 1.0]]],
    ]
    return {"id": "a", "block_size": 64, "tool_tokens": 512, "system_tokens": 512, "requests": requests} | change


def test_agent_sessions_delta_coded_and_in_full(tmp_path):
    short = load_workload(lines(tmp_path / "short.jsonl", [agent_session()]), 3)
    assert short.block_size == 512 and short.num_tokens.tolist() == [2048, 1024, 3072]
    assert short.session.tolist() == [0, 1, 0] and short.is_agent.all() and short.waits_for_tool.tolist() == [True, False, False]
    whole, sub, later = paths(short)
    # 30 of 64-token blocks stay: three joined ones.
    assert whole[:3] == later[:3] and len(whole) == 4 and len(later) == 6 and not set(sub) & set(whole)
    assert short.kind[whole].tolist() == [TokenType.SYSTEM] * 2 + [TokenType.USER] * 2
    assert short.kind[later[4:]].tolist() == [TokenType.TOOL_OUTPUT] * 2
    ids = list(range(1, 33))
    full = [
        {
            "t": 0.0,
            "type": "n",
            "in": 2048,
            "out": 100,
            "hash_ids": ids,
            "input_types": ["text"],
            "output_types": ["text", "tool_use"],
            "stop": "tool_use",
        },
        {
            "t": 9.0,
            "type": "n",
            "in": 3072,
            "out": 100,
            "hash_ids": ids[:30] + list(range(40, 58)),
            "input_types": ["tool_result"],
            "output_types": ["text"],
        },
        {
            "t": 4.0,
            "type": "subagent",
            "tool_tokens": 64,
            "system_tokens": 64,
            "requests": [{"t": 0.0, "in": 1024, "out": 10, "hash_ids": list(range(100, 116))}],
        },
    ]
    same = load_workload(lines(tmp_path / "full.jsonl", [agent_session(requests=full)]), 3)
    assert paths(same) == paths(short) and (same.kind == short.kind).all() and np.allclose(same.time_s, short.time_s)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (agent_session(requests=[[0.0, "n", "m", 64, 1, 0, [[1, 1]], "X", "T", "end_turn", 0, 0]]), "unknown types 'X'"),
        (agent_session(requests=[[0.0, "n"]]), "not understood"),
        (agent_session(block_size=60), "'block_size' is 60"),
        (agent_session(requests=5), "'requests' is 5"),
    ],
)
def test_broken_agent_sessions(tmp_path, row, reason):
    with pytest.raises(BadRequest, match=f"s.jsonl, line 1: .*{reason}"):
        load_workload(lines(tmp_path / "s.jsonl", [row]), 0)


def test_a_session_that_comes_twice(tmp_path):
    with pytest.raises(BadRequest, match=r"line 2.*comes twice"):
        load_workload(lines(tmp_path / "s.jsonl", [agent_session(), agent_session()]), 0)


CHAT = [
    {
        "role": "system",
        "content": "You are a helpful guide to the old harbour and to all of its ships and cranes, day and night, rain or shine.",
    },
    {"role": "user", "content": "Which ship is the oldest one that still lies here, and who built it, when, and of what wood?"},
    {
        "role": "assistant",
        "content": "<think>It must be the Anna, the list says so on its first page.</think>" + "The Anna, built in 1850. " * 5,
    },
    {"role": "user", "content": "And the youngest?"},
    {"role": "assistant", "content": "The Bertha."},
]


def test_chats_are_typed_by_role(tmp_path):
    shared = [{"messages": CHAT}, {"messages": [*CHAT[:2], {"role": "assistant", "content": "The Anna."}]}]
    workload = load_workload(lines(tmp_path / "chat.jsonl", shared), 1)
    assert workload.block_size == 16 and workload.num_requests == 3 and sorted(workload.session.tolist()) == [0, 0, 1]
    assert workload.kind[paths(workload)[0][0]] == TokenType.SYSTEM
    assert TokenType.COT in workload.kind and TokenType.RESPONSE in workload.kind
    first, other = [r for r in workload.requests() if r.turn == 0]
    assert first.path[: first.num_prompt].tolist() == other.path[: other.num_prompt].tolist()
    # What was thought is not repeated: the second turn's prompt leaves the first answer's branch.
    second = next(r for r in workload.requests() if r.turn == 1)
    own = first if first.session == second.session else other
    assert second.path[: own.num_prompt].tolist() == own.path[: own.num_prompt].tolist()
    assert second.path[own.num_prompt] != own.path[own.num_prompt]


def test_chat_layouts_are_told_apart(tmp_path):
    share = [{"from": {"user": "human", "assistant": "gpt"}.get(m["role"], m["role"]), "value": m["content"]} for m in CHAT]
    expected = load_workload(lines(tmp_path / "a.jsonl", [{"messages": CHAT}]), 1)
    for name, text in (
        ("b.jsonl", json.dumps({"conversations": share})),
        ("c.json", json.dumps([{"traj": CHAT}], indent=1)),
    ):
        (tmp_path / name).write_text(text)
        found = load_workload(str(tmp_path / name), 1)
        assert paths(found) == paths(expected) and (found.kind == expected.kind).all()


def test_recorded_calls_of_agents(tmp_path):
    text = "system: " + "You plan trips. " * 12 + "\n\nuser: " + "To Maui, please. " * 12
    rows = [{"timestamp": 2_000_000 * i, "input": text, "output": "Done. " * 40, "session_id": "s", "agent": "planner"} for i in range(2)]
    workload = load_workload(lines(tmp_path / "calls.jsonl", rows), 0)
    assert workload.time_s.tolist() == [0.0, 2.0] and workload.turn.tolist() == [0, 1] and workload.is_agent.all()
    assert {TokenType.SYSTEM, TokenType.USER, TokenType.RESPONSE} <= set(workload.kind.tolist())


def test_unknown_roles_are_refused(tmp_path):
    with pytest.raises(BadRequest, match=r"line 1: the role 'narrator' is unknown"):
        load_workload(lines(tmp_path / "x.jsonl", [{"messages": [{"role": "narrator", "content": "Once"}]}]), 0)


def test_azure_lengths_and_arrivals(tmp_path):
    log = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    (tmp_path / "azure.csv").write_text(log)
    workload = load_workload(str(tmp_path / "azure.csv"), 0)
    assert workload.time_s.tolist() == pytest.approx([0.0, 4.314579]) and workload.num_tokens.tolist() == [374, 396]
    assert not set(paths(workload)[0]) & set(paths(workload)[1])
    (tmp_path / "bad.csv").write_text(log + "2023-11-16 18:15:40.0,1,1\n")
    with pytest.raises(BadRequest, match=r"bad\.csv, line 4: time goes backwards"):
        load_workload(str(tmp_path / "bad.csv"), 0)


BAD_MOONCAKE = [
    ([*MOONCAKE, {"timestamp": 100, "input_length": 5, "hash_ids": [1]}], "line 4: 'timestamp' goes back from 500 to 100"),
    ([MOONCAKE[0], "{broken"], "line 2: is not JSON"),
    ([MOONCAKE[0], "7"], "line 2: holds 7"),
    ([MOONCAKE[0] | {"hash_ids": [1, 1, 2]}], "names a block twice"),
    ([MOONCAKE[0] | {"hash_ids": [1, None, 2]}], "neither a number nor a text"),
    ([MOONCAKE[0] | {"hash_ids": "abc"}], "must be a list"),
    ([MOONCAKE[0] | {"input_length": -4}], "'input_length' is -4"),
    ([MOONCAKE[0] | {"input_length": 99_999}], "do not make a prompt of 99999"),
    ([MOONCAKE[0] | {"timestamp": True}], "'timestamp' is True"),
]


@pytest.mark.parametrize(("rows", "reason"), BAD_MOONCAKE)
def test_broken_lines_name_file_line_and_reason(tmp_path, rows, reason):
    with pytest.raises(BadRequest) as error:
        load_workload(lines(tmp_path / "trace.jsonl", rows), 0)
    assert str(error.value).startswith("trace.jsonl, line") and reason in str(error.value)


@pytest.mark.parametrize("content", ["", "\n\n", "{}\n", "hello\n", '["a"]'])
def test_files_that_hold_no_requests(tmp_path, content):
    (tmp_path / "odd.jsonl").write_text(content)
    with pytest.raises(BadRequest, match=r"odd\.jsonl"):
        load_workload(str(tmp_path / "odd.jsonl"), 0)


def test_what_is_no_log_lists_the_generated_ones():
    with pytest.raises(BadRequest, match="mix, shift"):
        load_workload("nowhere.jsonl", 0)


def test_a_truncated_archive_is_one_sentence(tmp_path):
    name = lines(tmp_path / "cut.jsonl.gz", MOONCAKE * 50, packed=True)
    Path(name).write_bytes(Path(name).read_bytes()[:-20])
    with pytest.raises(BadRequest, match=r"cut\.jsonl\.gz, line"):
        load_workload(name, 0)


def test_reading_can_be_stopped(tmp_path):
    rows = [MOONCAKE[0] | {"timestamp": i} for i in range(25_000)]
    seen = []
    with pytest.raises(Cancelled, match=r"line 20,000"):
        load_workload(lines(tmp_path / "long.jsonl", rows), 0, progress=lambda n: seen.append(n) or n < 20_000)
    assert seen == [10_000, 20_000]


def test_sessions_are_guessed_from_the_past_alone():
    guess = SessionGuess()
    assert guess.session([1, 2, 3]) == 0
    assert guess.session([1, 2, 4, 5]) == 0
    assert guess.session([1, 9]) == 1
    assert guess.session([1, 2, 4, 6, 7, 8]) == 0
    assert guess.session([20, 21]) == 2


@pytest.mark.parametrize("name", sorted(path.name for path in TRACES.glob("*.gz")) or ["none"])
def test_recorded_logs_are_read(name):
    if name == "none":
        pytest.skip(f"no logs in {TRACES}")
    if "agent_sessions" in name:
        from engine.prefix.workloads.agent_sessions import read_agent_sessions

        workload = read_agent_sessions(TRACES / name, 0, max_sessions=8)
    else:
        workload = load_workload(str(TRACES / name), 0)
    assert workload.num_requests > 100 and (np.diff(workload.time_s) >= 0).all()
    own = workload.parent >= 0
    assert (workload.parent[own] < np.flatnonzero(own)).all() and (workload.depth[own] == workload.depth[workload.parent[own]] + 1).all()
