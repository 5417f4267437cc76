"""Logs as they are found in the wild: marks and encodings, archives, numbers and shapes that no reader may trip over."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest

from engine.cache_types import ReplayRequest
from engine.errors import BadRequest, Cancelled
from engine.prefix.lab import run_replay
from engine.prefix.workloads import builder, items
from engine.prefix.workloads.catalog import load_workload, log_format

ROW = {"timestamp": 0, "input_length": 1300, "output_length": 9, "hash_ids": [1, 2, 3]}
OTHER = {"timestamp": 500, "input_length": 600, "output_length": 9, "hash_ids": [1, 9]}
TURN = {
    "chat_id": 5,
    "parent_chat_id": -1,
    "timestamp": 1.5,
    "input_length": 30,
    "output_length": 4,
    "type": "text",
    "turn": 1,
    "hash_ids": [7, 8],
}
REQUEST = [0.0, "n", "m", 2048, 100, 0, [[1, 32]], "T", "TU", "tool_use", 0.0, 1.0]
ASKED, ANSWERED = (
    "Which ship is the oldest one that still lies here? " * 4,
    {"role": "assistant", "content": "The Anna, built in 1850. " * 5},
)
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
NINES = "9" * 5000


def text(*rows):
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def read(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_workload(str(tmp_path / name), 0)


def agent(*requests, **change):
    return text({"id": "a", "block_size": 64, "tool_tokens": 512, "system_tokens": 512, "requests": list(requests)} | change)


def asked(place, value):
    return agent([*REQUEST[:place], value, *REQUEST[place + 1 :]])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le with mark"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_windows_puts_in_front_is_no_part_of_a_log(tmp_path, encoding, packed):
    def stored(content):
        data = b"\xff\xfe" + content.encode("utf-16-le") if encoding.endswith("mark") else content.encode(encoding)
        return gzip.compress(data) if packed else data

    assert read(tmp_path, "log.jsonl", stored(text(ROW, OTHER))).num_tokens.tolist() == [1300, 600]
    assert read(tmp_path, "log.csv", stored(HEAD + "2023-11-16 18:15:46.68,374,44\r\n")).num_tokens.tolist() == [374]
    chats = json.dumps([{"messages": [{"role": "user", "content": ASKED}, ANSWERED]}])
    assert read(tmp_path, "log.json", stored(chats)).num_requests == 1


def test_archives_are_told_by_what_is_in_them_not_by_their_name(tmp_path):
    assert read(tmp_path, "unpacked-by-the-browser.jsonl.gz", text(ROW, OTHER)).num_requests == 2
    assert read(tmp_path, "packed.jsonl", gzip.compress(text(ROW, OTHER).encode())).num_requests == 2


def test_empty_lines_in_front(tmp_path):
    assert read(tmp_path, "log.jsonl", "\n  \n" + text(ROW, OTHER)).num_requests == 2


@pytest.mark.parametrize("name", ["log.jsonl.gz", "log.csv.gz", "log.json.gz"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "no stream"])
def test_a_damaged_archive_is_one_sentence(tmp_path, name, damage):
    rng = np.random.default_rng(0)
    rows = [ROW | {"timestamp": i, "note": rng.bytes(6).hex()} for i in range(2000)]
    content = {
        "log.jsonl.gz": text(*rows),
        "log.csv.gz": HEAD + "".join(f"2023-11-16 18:15:46.68,{n},44\n" for n in rng.integers(1, 4000, 2000)),
        "log.json.gz": json.dumps([{"messages": [{"role": "user", "content": row["note"]}, ANSWERED]} for row in rows]),
    }[name]
    data = gzip.compress(content.encode())
    middle = len(data) // 2
    data = {"cut": data[:-30], "flipped": data[:middle] + b"\xff" * 40 + data[middle + 40 :], "no stream": data[:10] + b"\xff" * 50}[damage]
    with pytest.raises(BadRequest, match=rf"^{name}[, ].*"):
        read(tmp_path, name, data)


def test_azure_times_with_a_zone_and_with_none_of_a_second(tmp_path):
    rows = "2024-05-12 00:00:00+00:00,2162,5\n2024-05-12 00:00:00.001163+00:00,2399,6\n2024-05-12 00:00:01+00:00,76,15\n"
    assert read(tmp_path, "azure2024.csv", HEAD + rows).time_s.tolist() == pytest.approx([0.0, 0.001163, 1.0])
    mixed = "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:47,374,44\n"
    assert read(tmp_path, "mixed.csv", HEAD + mixed).time_s.tolist() == pytest.approx([0.0, 0.31941])
    turned = '"ContextTokens", "GeneratedTokens", "TIMESTAMP"\n"374","44","2023-11-16 18:15:46.68"\n'
    assert read(tmp_path, "turned.csv", turned).num_tokens.tolist() == [374]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2023-11-16 18:15:46.68,nan,44", "line 2: ContextTokens is 'nan'; it must be a whole number"),
        ("2023-11-16 18:15:46.68,374.0,44", "line 2: ContextTokens is '374.0'"),
        ("2023-11-16 18:15:46.68,-3,44", "line 2: ContextTokens is '-3'"),
        ("2023-11-16 18:15:46.68,2000000000,44", "line 2: ContextTokens is '2000000000'"),
        (f"2023-11-16 18:15:46.68,{NINES},44", "line 2: ContextTokens is '9999"),
        (f"2023-11-16 18:15:46.68,{NINES * 40},44", "line 2: cannot be read"),
        ("2023-11-16 18:15:46.68", "line 2: ContextTokens is 'None'"),
        ("yesterday,374,44", "line 2: TIMESTAMP is 'yesterday'; it must be a time"),
    ],
)
def test_broken_azure_rows(tmp_path, row, reason):
    with pytest.raises(BadRequest) as error:
        read(tmp_path, "azure.csv", HEAD + row + "\n")
    assert str(error.value).startswith("azure.csv, " + reason) and len(str(error.value)) < 250


def test_every_kind_of_request_that_qwens_traces_hold(tmp_path):
    rows = [TURN | {"chat_id": i, "type": kind} for i, kind in enumerate(("text", "api", "thinking", "coder"))]
    assert read(tmp_path, "qwen_traceB_blksz_16.jsonl", text(*rows)).num_requests == 4
    twice = read(tmp_path, "twice.jsonl", text(TURN | {"input_length": 48, "hash_ids": [7, 7, 8]}))
    assert twice.path.tolist() == [0, 1, 2] and twice.parent.tolist() == [-1, 0, 1]


NUMBERS = [
    (text(ROW, f'{{"timestamp": {NINES}}}'), "line 2: is not JSON that can be read"),
    (text(f'{{"timestamp": {NINES}}}'), "line 1: is not JSON that can be read"),
    (f'[{{"messages": {NINES}}}]', "item 0: is not JSON that can be read"),
    (text(ROW | {"timestamp": 10**400}), "line 1: 'timestamp' is 1000"),
    (text(ROW | {"input_length": 10**12}), "line 1: 'input_length' is 1000000000000"),
    (text(TURN | {"input_length": 10**12}), "line 1: 'input_length' is 1000000000000"),
    (text(TURN | {"turn": 10**12}), "line 1: 'turn' is 1000000000000"),
    (text(TURN | {"chat_id": 10**400}), "line 1: 'chat_id' is 1000"),
    (text({"timestamp": 10**400, "input": "a", "output": "b", "session_id": "s"}), "line 1: 'timestamp' is 1000"),
]
SHAPES = [
    ('{"messages":' + "[" * 100_000, "line 1: is nested too deep"),
    ("[" * 100_000, "item 0: is nested too deep"),
    ('[{"messages": []}', "its array is broken off"),
    ('[{"messages": [', "item 0: is not JSON"),
    (text({"messages": [{"role": ["user"], "content": "x"}]}), "line 1: the role ['user'] is unknown"),
    (text({"messages": [{"role": "user", "content": 5}, ANSWERED]}), "line 1: a message's content is '5'"),
]
AGENTS = [
    (agent(REQUEST, tool_tokens="many"), "'tool_tokens' is 'many'"),
    (agent(REQUEST, tool_tokens=-5000), "'tool_tokens' is -5000"),
    (agent(REQUEST, system_tokens=[1]), "'system_tokens' is [1]"),
    (asked(0, -1e30), "'t' is -1e+30"),
    (asked(0, float("inf")), "'t' is inf"),
    (asked(3, -4), "'in' is -4"),
    (asked(3, 3 * 10**9), "'in' is 3000000000"),
    (asked(6, [[0, 10**9]]), "'count of a run of blocks' is 1000000000"),
    (asked(7, 5), "a request's types are [5, 'TU']"),
    (agent(["sub", 4.0]), "a sub-agent has 2 fields"),
    (agent(["sub", "x", 1, 1, 1, []]), "'t of a sub-agent' is 'x'"),
    (agent({"t": 0, "in": 2048, "out": 4, "hash_ids": [{"a": 1}] * 32}), "block ids hold something"),
]


@pytest.mark.parametrize(("content", "reason"), [*NUMBERS, *SHAPES, *AGENTS])
def test_numbers_and_shapes_no_log_should_have(tmp_path, content, reason):
    with pytest.raises(BadRequest) as error:
        read(tmp_path, "log.jsonl", content)
    assert str(error.value).startswith("log.jsonl") and reason in str(error.value) and len(str(error.value)) < 350


def test_a_last_block_that_its_prompt_does_not_fill(tmp_path):
    # 1,000 tokens are 16 blocks of 64, the last one in part, and one block of 512.
    assert read(tmp_path, "log.jsonl", agent({"t": 0, "in": 1000, "out": 4, "hash_ids": list(range(16))})).num_blocks == 1


def test_the_text_of_messages_in_parts_is_counted(tmp_path):
    whole = read(tmp_path, "whole.jsonl", text({"messages": [{"role": "user", "content": ASKED}, ANSWERED]}))
    parts = [{"type": "text", "text": ASKED}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    assert read(tmp_path, "parts.jsonl", text({"messages": [{"role": "user", "content": parts}, ANSWERED]})).num_tokens == whole.num_tokens


def test_an_array_is_read_item_by_item(tmp_path, monkeypatch):
    monkeypatch.setattr(items, "_PART_CHARS", 64)
    rows = [{"messages": [{"role": "user", "content": ASKED + str(i)}, ANSWERED]} for i in range(20)]
    (tmp_path / "log.json").write_text("\ufeff " + json.dumps(rows, indent=3), encoding="utf-8")
    assert [line.value for line in items.read_items(tmp_path / "log.json")] == rows
    with pytest.raises(Cancelled, match="item 7"):
        list(items.read_items(tmp_path / "log.json", lambda number: number < 7))


@pytest.mark.parametrize(
    "rows",
    [
        (ROW, OTHER),
        (TURN,),
        (json.loads(agent(REQUEST)),),
    ],
    ids=["mooncake", "bailian", "agent sessions"],
)
def test_every_format_may_be_one_array(tmp_path, rows):
    lines, array = read(tmp_path, "log.jsonl", text(*rows)), read(tmp_path, "log.json", json.dumps(rows, indent=1))
    assert array.num_tokens.tolist() == lines.num_tokens.tolist() and array.time_s.tolist() == lines.time_s.tolist()
    assert log_format(tmp_path / "log.json") == log_format(tmp_path / "log.jsonl")


def test_an_archive_that_unpacks_to_an_endless_array_is_not_held(tmp_path):
    (tmp_path / "bomb.json").write_bytes(gzip.compress(b"[" + b"1," * 20_000_000, 1))
    tracemalloc.start()
    with pytest.raises(BadRequest, match=r"item 0: holds 1"):
        load_workload(str(tmp_path / "bomb.json"), 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20


def test_a_log_larger_than_memory_is_refused(tmp_path, monkeypatch):
    rows = [ROW | {"timestamp": i, "hash_ids": [3 * i, 3 * i + 1, 3 * i + 2]} for i in range(5)]
    monkeypatch.setattr(builder, "MAX_BLOCKS", 10)
    with pytest.raises(BadRequest, match=r"more than 10 different blocks of 512 tokens after 3 requests; choose one with fewer"):
        read(tmp_path, "log.jsonl", text(*rows))
    monkeypatch.undo()
    monkeypatch.setattr(builder, "MAX_PATHS", 10)
    with pytest.raises(BadRequest, match=r"more than 10 blocks in all of its prompts"):
        read(tmp_path, "log.jsonl", text(*[ROW] * 5))


def test_a_long_session_can_be_stopped_within(tmp_path):
    (tmp_path / "log.jsonl").write_text(agent(*[REQUEST] * 50))
    with pytest.raises(Cancelled, match=r"log\.jsonl, line 1"):
        load_workload(str(tmp_path / "log.jsonl"), 0, progress=lambda number: number < 20)


def test_a_log_whose_prompts_fill_no_block(tmp_path):
    (tmp_path / "log.jsonl").write_text(text({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}))
    with pytest.raises(BadRequest, match=r"no prompt that fills a block"):
        run_replay(ReplayRequest(str(tmp_path / "log.jsonl"), "lru", 0.05))


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "x"])
def test_a_seed_that_draws_nothing_is_one_sentence(seed):
    with pytest.raises(BadRequest, match=r"^The seed is .*; it must be a whole number from 0 to"):
        ReplayRequest("balanced", "lru", 0.05, seed)


def test_an_upload_that_was_cleaned_away_is_to_be_opened_again(tmp_path):
    with pytest.raises(BadRequest, match=r"^The log 'mine\.jsonl' is not there \(any more\)") as error:
        load_workload(str(tmp_path / "mine.jsonl"), 0)
    assert str(tmp_path) not in str(error.value)
