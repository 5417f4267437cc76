"""Bundle, look, pages, benchmark points and the folder of the static site, without a browser."""

import base64
import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from fake_runs import INJECTION, fake_run, injection_scenario

from engine.method_list import method_names
from engine.resultsfile import RESULTS_DIR, load_results
from engine.runfile import dump_run, load_run
from engine.session import as_replay
from viz import theme
from viz.player.bundle import PLAYER_DIR, bundle, module_files
from viz.player.export import export_html
from viz.player.grid import time_points
from viz.player.look import ON_DARK, SURFACES, css_variables, looks
from viz.player.pack import pack_run
from viz.player.page import json_island, linked_page
from viz.player.static import FILMS_DIR, RUNS_DIR, write_site

MAX_SCRIPT_BYTES = 150_000
RUN = as_replay(load_run(RUNS_DIR / "servo-manual.run.json.gz"))


def test_the_scripts_fit_the_budget_and_every_module_is_used():
    used = {path.relative_to(PLAYER_DIR).as_posix() for path in module_files()}
    ours = {path.relative_to(PLAYER_DIR).as_posix() for folder in ("core", "view") for path in (PLAYER_DIR / folder).glob("*.js")}
    assert ours <= used
    assert len(bundle("shell/static.js").encode()) <= MAX_SCRIPT_BYTES


def test_modules_stay_small():
    for path in [*module_files(), PLAYER_DIR / "player.css", PLAYER_DIR / "shell" / "static.js"]:
        assert len(path.read_text().splitlines()) <= 300, path


def test_core_modules_know_no_dom():
    for path in (PLAYER_DIR / "core").glob("*.js"):
        found = re.search(r"\b(document|window|navigator|localStorage)\.|\bfetch\(", re.sub(r"//.*", "", path.read_text()))
        assert found is None, f"{path.name} uses {found and found[0]}"


def test_no_module_can_set_markup_or_reach_the_network():
    for path in module_files():
        text = re.sub(r"//.*", "", path.read_text().replace("http://www.w3.org/2000/svg", ""))
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "fetch(",
            "http:",
            "XMLHttpRequest",
        ):
            assert word not in text, f"{path.name}: {word}"
    assert not re.search(r"url\(|@import|http", (PLAYER_DIR / "player.css").read_text())


def test_the_bundle_runs_as_a_script_of_its_own_scope():
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not installed")
    code = f"const run = (() => {{ {bundle()} return typeof mount + typeof decodeRun; }})(); console.log(run);"
    done = subprocess.run([node, "-"], input=code, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "functionfunction", done.stderr


def test_a_bundle_says_what_its_modules_say(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not installed")
    (tmp_path / "b.js").write_text(
        "// A private name that another module has too.\nconst hidden = 2;\nexport const two = (n) => {\n"
        "  const parts = [\n    n,\n    hidden,\n  ];\n  return parts[0] * parts[1] + +true;\n};\n"
    )
    (tmp_path / "a.js").write_text(
        'import { two } from "./b.js";\nimport * as all from "./b.js";\nconst hidden = "a , b  =  c", look = / [a-z ]+ , x/u;\n'
        "export const said = (n) =>\n"
        """  `${hidden} : ${two( n + 1 )} ${look.test(" ab , x") ? "y , e" : 'n , o'} ${all.two(3) - 1} ${n - -1}` +\n"""
        """  [`${ n + 1 } , a`, `${n} ; b ${"x , y"}`, n ? `p : ${`q , ${n}`}` : "", `it's , ${n}`].join(" | ");\n"""
    )
    script = bundle("a.js", tmp_path)
    code = f'import {{ said }} from "{(tmp_path / "a.js").as_uri()}"; const bundled = (() => {{ {script} return said(4); }})(); '
    code += "console.log(JSON.stringify([said(4), bundled]));"
    done = subprocess.run([node, "--input-type=module", "-e", code], capture_output=True, text=True, check=False)
    said, bundled = json.loads(done.stdout or "[1, 2]")
    assert said == bundled == "a , b  =  c : 11 y , e 6 55 , a | 4 ; b x , y | p : q , 4 | it's , 4", done.stderr
    assert "\n//" not in script and "n,hidden]" in script


def test_the_bundle_refuses_two_exports_of_one_name(tmp_path):
    (tmp_path / "a.js").write_text('import { x } from "./b.js";\nexport const y = x;\n')
    (tmp_path / "b.js").write_text("export const x = 1;\nexport const y = 2;\n")
    with pytest.raises(AssertionError, match=r"\['y'\]"):
        bundle("a.js", tmp_path)


def test_the_bundle_refuses_forms_it_does_not_read(tmp_path):
    (tmp_path / "a.js").write_text('import b from "./b.js";\nexport const x = b;\n')
    (tmp_path / "b.js").write_text("export default 1;\n")
    with pytest.raises(AssertionError, match=r"a\.js has a form"):
        bundle("a.js", tmp_path)
    (tmp_path / "a.js").write_text('import { c } from "./c.js";\nexport const a = 1;\n')
    (tmp_path / "c.js").write_text('import { a } from "./a.js";\nexport const c = 2;\n')
    with pytest.raises(AssertionError, match="imports itself"):
        bundle("a.js", tmp_path)


def test_colours_come_from_the_pages_palette():
    light = css_variables().splitlines()[0]
    for state, color in theme.STATE_COLORS.items():
        assert f"--fp-{state}:{color};" in light
    for stage, color in theme.STAGE_COLORS.items():
        assert f"--fp-stage-{stage}:{color};" in light
    assert set(ON_DARK) <= set(theme.STATE_COLORS.values())
    table = looks(["qcfuse", "full", "qcfuse+k_shift"])
    assert list(table["methods"]) == ["full", "qcfuse", "qcfuse+k_shift"]
    assert table["methods"]["qcfuse"] == {"label": theme.method_label("qcfuse"), "color": theme.method_color("qcfuse")}
    assert table["hatches"] == theme.STAGE_HATCH


def test_badges_have_the_colours_of_the_pages_badges():
    rules = (PLAYER_DIR.parent / "fusescope.css").read_text()
    for look, place in (("light", ".fs-badge-"), ("dark", ".dark .fs-badge-")):
        for mode in ("live", "simulated"):
            assert f"\n{place}{mode} {{ color: {SURFACES[look][mode]};" in rules, (look, mode)


def test_every_colour_the_player_asks_for_is_defined():
    wanted = set(re.findall(r"var\(--fp-([a-z-]+)\)", (PLAYER_DIR / "player.css").read_text()))
    defined = set(re.findall(r"--fp-([a-z_-]+):", css_variables() + (PLAYER_DIR / "player.css").read_text()))
    assert wanted <= defined, wanted - defined
    for values in SURFACES.values():
        assert set(values) == set(SURFACES["light"])


def contrast(one: str, other: str) -> float:
    def light(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", SURFACES)
def test_text_can_be_read_on_every_surface(name):
    values = SURFACES[name]
    for text in ("ink", "muted"):
        for surface in ("page", "panel", "band", "band-odd", "waiting", "soft"):
            assert contrast(values[text], values[surface]) >= 4.5, (text, surface)
    assert contrast(values["on-accent"], values["accent"]) >= 4.5


def test_hatches_exist_for_every_stage():
    drawn = set(re.findall(r'^  (?:"(.)"|(\w)): \[', (PLAYER_DIR / "view" / "hatch.js").read_text(), re.M))
    assert {hatch for hatch in theme.STAGE_HATCH.values() if hatch} <= {quoted or plain for quoted, plain in drawn}


def test_no_text_from_outside_becomes_markup_in_an_exported_page():
    page = export_html(fake_run(injection_scenario().request("q1")))
    assert "<img src=x" not in page and "</script><script>" not in page
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert json.loads(json_island({"text": INJECTION}))["text"] == INJECTION


def test_an_exported_page_is_the_same_for_the_same_run_and_holds_the_run_file():
    assert export_html(RUN) == export_html(RUN)
    data = json.loads(re.search(r'id="data">(.*?)</script>', export_html(RUN), re.S)[1])
    assert {mode: base64.b64decode(text) for mode, text in data["runFiles"].items()} == {RUN.provenance.mode: dump_run(RUN)}


def test_names_that_are_translated_are_the_pages_names_in_english():
    english = json.loads((PLAYER_DIR / "strings.json").read_text())["en"]
    named = {key.removeprefix("name_"): text for key, text in english.items() if key.startswith("name_")}
    both = looks(method_names(), theme.POLICIES)["methods"]
    assert {"full", "reuse", "min", "saecache"} <= set(named) <= set(both)
    assert named == {name: both[name]["label"] for name in named}


def test_an_exported_page_holds_the_other_run_of_the_pair_and_the_second_question():
    live, flip = replace(RUN, provenance=replace(RUN.provenance, mode="live")), replace(RUN, question="Who else?")
    recorded = replace(RUN, provenance=replace(RUN.provenance, mode="replay"))
    data = json.loads(re.search(r'id="data">(.*?)</script>', export_html(live, None, recorded, {"label": "x"}, flip), re.S)[1])
    assert (data["run"], data["ghost"], data["flip"]) == tuple(json.loads(json.dumps(pack_run(run))) for run in (live, recorded, flip))
    assert data["otherTimes"] == {"label": "x"}
    files = {mode: base64.b64decode(text) for mode, text in data["runFiles"].items()}
    assert files == {"live": dump_run(live), "replay": dump_run(recorded)}


def test_a_linked_page_allows_nothing_from_elsewhere():
    page = linked_page("player.js", "player.css")
    assert "default-src 'none'" in page and "unsafe" not in page and "http" not in page.replace("http-equiv", "")


def test_benchmark_points_are_the_results_medians_and_only_where_comparable():
    results = load_results(RESULTS_DIR / "scenarios.json")
    points = time_points(results, RUN)
    expected = sorted([row.ratio, row.ttft_s.median] for row in results.rows if row.method == "qcfuse")
    assert points["points"]["qcfuse"] == expected and len(expected) >= 2
    assert "full" not in points["points"]
    other = replace(results, provenance=replace(results.provenance, device="another machine"))
    assert time_points(other, RUN) is None and time_points(None, RUN) is None


def test_a_folder_that_is_not_a_site_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SystemExit, match="choose another folder"):
        write_site(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_site_is_written_anew_and_holds_every_recorded_run(site_folder):
    names = {path.name for path in (site_folder / "runs").iterdir()}
    for path in RUNS_DIR.glob("*.run.json.gz"):
        base = path.name.removesuffix(".run.json.gz")
        assert {path.name, f"{base}.json", f"{base}.html"} <= names
        assert (site_folder / "runs" / path.name).read_bytes() == path.read_bytes()
    listed = json.loads((site_folder / "site.json").read_text())["runs"]
    assert len({entry["id"] for entry in listed}) == len(listed)
    for entry in (entry for entry in listed if entry.get("tab") != "evict"):
        for key in ("packed", "file", "html"):
            assert (site_folder / entry[key]).is_file()
        assert json.loads((site_folder / entry["packed"]).read_text())["provenance"]["mode"] == "replay"


def test_a_site_holds_every_recorded_film(site_folder):
    listed = [entry for entry in json.loads((site_folder / "site.json").read_text())["runs"] if entry.get("tab") == "evict"]
    held = {site_folder / path for entry in listed for path in entry["files"].values()}
    assert sorted(path.read_bytes() for path in held) == sorted(path.read_bytes() for path in FILMS_DIR.glob("*.cache.json.gz"))
    for entry in listed:
        film = json.loads((site_folder / entry["packed"]).read_text())
        assert [method["policy"] for method in film["methods"]] == list(entry["files"]) and (site_folder / entry["html"]).is_file()
    assert {scene["scenario"] for scene in json.loads((PLAYER_DIR / "evict_tour.json").read_text())} <= {entry["id"] for entry in listed}


def test_every_scene_finds_its_recorded_run():
    tour = json.loads((PLAYER_DIR / "tour.json").read_text())
    recorded = {path.name.removesuffix(".run.json.gz") for path in RUNS_DIR.glob("*.run.json.gz")}
    assert {scene["scenario"] for scene in tour} <= recorded
    assert len({scene["id"] for scene in tour}) == len(tour) == 10


def test_python_and_the_player_write_numbers_alike():
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not installed")
    from viz.figures import words

    values = [0.0, 0.00042, 0.0123, 0.0999, 0.1, 0.8789, 2.311, 99.99, 123.4]
    sizes = [0, 7, 999, 1000, 9_940, 101_607_168, 3_300_000_000]
    module = (PLAYER_DIR / "core" / "words.js").as_uri()
    code = (
        f'import * as w from "{module}"; console.log(JSON.stringify([{values}.map((v) => w.seconds(v)), {sizes}.map((v) => w.bytes(v))]));'
    )
    done = subprocess.run([node, "--input-type=module", "-e", code], capture_output=True, text=True, check=True)
    seconds, sizes_seen = json.loads(done.stdout)
    assert [s.replace("0 ms", "0.0 ms") if v == 0 else s for s, v in zip(seconds, values, strict=True)] == [
        words.seconds(v) for v in values
    ]
    assert sizes_seen == [words.size(v) for v in sizes]
