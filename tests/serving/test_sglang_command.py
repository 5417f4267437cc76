"""What is typed: the launcher's arguments, the question by `--engine sglang`, the table built-in against SGLang."""

import json
from types import SimpleNamespace

import pytest
from fake_sglang import FakeSGLang, serving
from worlds import lighthouse, tiny_runtime

import engine.ask
import engine.bench.sglang as bench
import engine.runtime
from engine.errors import BadRequest, ModelUnavailable
from engine.serving.sglang.launch import command, with_bundled
from engine.serving.sglang_lane import PREFIX_CACHE
from engine.settings import Settings

SCENARIO = SimpleNamespace(questions=[SimpleNamespace(id="q1")], request=lambda question, **more: lighthouse(**more))


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("command"))


@pytest.fixture
def url(runtime, monkeypatch, tmp_path):
    """The address of a made-up server, which the environment names, beside a tiny model."""
    monkeypatch.setattr(engine.runtime, "load_runtime", lambda name, settings, store=None: runtime)
    monkeypatch.setattr(bench, "load_runtime", lambda name, settings: runtime)
    monkeypatch.setattr(bench, "find_scenario", lambda name: SCENARIO)
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    with serving(FakeSGLang().app()) as url:
        monkeypatch.setenv("FUSESCOPE_SGLANG_URL", url)
        yield url


def test_the_bundled_model_is_served_from_where_the_app_has_left_it(tmp_path):
    settings = Settings(cache_dir=tmp_path)
    with pytest.raises(ModelUnavailable, match=r"no converted SmolLM2-135M-Instruct in .*start the app once"):
        with_bundled(["--model-path", "bundled"], settings)
    folder = tmp_path / "models" / "smollm2-135m-instruct-0123abcd"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    assert with_bundled(["--model-path", "bundled", "--port", "1"], settings) == ["--model-path", str(folder), "--port", "1"]
    assert with_bundled(["--model-path", "a/b", "--served-model-name", "bundled"], settings)[1:] == [
        "a/b",
        "--served-model-name",
        "bundled",
    ]


def test_a_server_is_started_so_that_it_tells_its_own_times():
    for on_cpu in (True, False):
        assert "--enable-metrics" in command(["--model-path", "a"], on_cpu)


def test_the_table_holds_both_engines_in_turn_and_ends_with_json(url, capsys):
    bench.main(["--ratios", "0.2,0.5", "--repeats", "2", "--max-new-tokens", "4"])
    *table, last = capsys.readouterr().out.strip().splitlines()
    told = json.loads(last)
    rows = {(row["engine"], row["method"], row["ratio"]): row for row in told["rows"]}
    assert len(table) == 1 + len(rows) == 1 + 2 * (3 + 4)
    assert {key[1] for key in rows if key[0] == "SGLang"} == {"full", "reuse", "qcfuse", PREFIX_CACHE}
    row = rows["SGLang", "qcfuse", 0.5]
    assert row["ttft_s"]["min"] <= row["ttft_s"]["median"] <= row["ttft_s"]["max"] and row["inside_s"]["median"] == 0.004
    assert rows["SGLang", "full", 0.2]["same_rows"] is True and rows["SGLang", "full", 0.2]["same_answer"] is False
    assert rows["built-in", "full", 0.2]["inside_s"] is None and rows["SGLang", PREFIX_CACHE, 0.2]["same_rows"] is None
    assert rows["built-in", "full", 0.2]["speedup_over_full"] == {"median": 1.0, "min": 1.0, "max": 1.0}
    assert told["provenance"]["SGLang"]["versions"] == {"sglang": "0.5.23"} and told["repeats"] == 2


@pytest.mark.parametrize("argv", [["--ratios", "much"], ["--methods", "qcfuse"], ["--repeats", "0"]])
def test_a_bad_call_is_a_sentence(url, argv):
    with pytest.raises(BadRequest):
        bench.main(argv)


def test_without_a_server_the_commands_say_what_to_set(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    monkeypatch.delenv("FUSESCOPE_SGLANG_URL", raising=False)
    with pytest.raises(BadRequest, match="set FUSESCOPE_SGLANG_URL"):
        bench.main([])
    assert engine.ask.main(["why?", "--scenario", "harbour-museum", "--engine", "sglang"]) == 2
    assert "set FUSESCOPE_SGLANG_URL" in capsys.readouterr().err


def test_a_question_is_asked_of_the_server(url, capsys, monkeypatch):
    monkeypatch.setattr(engine.ask.Session, "scenario", lambda self, name: SCENARIO)
    assert engine.ask.main(["why?", "--scenario", "any", "--engine", "sglang", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("LIVE · SGLang · tiny-llama") and "s inside the server" in printed and "prefix_cache: first token" in printed
