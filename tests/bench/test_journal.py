"""The file of finished samples: what is in it survives a stop, what was cut short does not count."""

import pytest
from bench_commands import method_record, sample_record

from engine.bench.journal import Journal, content_key
from engine.errors import BadRequest


def record(index):
    return sample_record(index, method_record("full", 1.5, 0.0, f1=0.25, exact_match=False, answer="náz"))


def test_records_come_back_as_they_were(tmp_path):
    path = tmp_path / "new" / "a.jsonl"
    journal = Journal(path)
    for index in (2, 0):
        journal.append(record(index))
    assert Journal(path).records == {0: record(0), 2: record(2)} == journal.records
    journal.remove()
    assert not path.exists() and Journal(path).records == {}


@pytest.mark.parametrize("tail", [b'{"index": 1, "sample_id"', b'{"index": 1}\n', b"\xff\xfe\n"], ids=["cut", "foreign", "binary"])
def test_a_torn_last_line_is_dropped_and_written_over(tmp_path, tail):
    path = tmp_path / "a.jsonl"
    Journal(path).append(record(0))
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    journal = Journal(path)
    assert list(journal.records) == [0] and path.read_bytes() == whole
    journal.append(record(1))
    assert list(Journal(path).records) == [0, 1]


def test_a_whole_line_without_its_end_is_dropped(tmp_path):
    path = tmp_path / "a.jsonl"
    Journal(path).append(record(0))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert Journal(path).records == {} and path.read_bytes() == b""


def test_fresh_forgets_what_was_there(tmp_path):
    path = tmp_path / "a.jsonl"
    Journal(path).append(record(0))
    assert Journal(path, fresh=True).records == {} and not path.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="FUSESCOPE_CACHE"):
        Journal(tmp_path / "file" / "a.jsonl")


def test_the_key_follows_every_part():
    assert content_key({"a": 1}, [2]) == content_key({"a": 1}, [2])
    assert len({content_key({"a": 1}, [2]), content_key({"a": 2}, [2]), content_key({"a": 1}, [3]), content_key({"a": 1})}) == 4
