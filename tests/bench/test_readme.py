"""README's measured table comes from the recorded results."""

import json

from results_samples import sample_results

from engine.bench import readme
from engine.bench.__main__ import main

PREFILL = {"rows": [{"tokens": 512, "ours_s": {"median": 0.5}, "transformers_s": {"median": 0.625}}]}


def test_the_table_is_that_of_the_recorded_results():
    assert main(["readme", "--check"]) == 0


def test_the_table_holds_what_was_measured():
    results = sample_results()
    table = readme.measured(results, PREFILL)
    row = results.row("qcfuse", 0.1)
    assert f"| `qcfuse` | 0.1 | {row.ttft_s.median:.2f} s | {row.speedup.median:.2f} [" in table
    assert f"| {row.kl_to_full.mean:.3f} [" in table and "512 tokens 0.50 s / 0.62 s" in table
    assert results.command in table and "0.05" not in table.split("Measured")[0]


def test_an_old_table_is_told_and_rewritten(tmp_path, monkeypatch, capsys):
    text = f"# Title\n{readme.BEGIN}\nSTALE\n{readme.END}\nrest\n"
    path = tmp_path / "README.md"
    path.write_text(text)
    monkeypatch.setattr(readme, "README", path)
    assert main(["readme", "--check"]) == 2 and path.read_text() == text
    assert main(["readme"]) == 0
    assert "STALE" not in path.read_text() and path.read_text().endswith("rest\n")
    assert main(["readme", "--check"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"][0]["changed"] is False
