"""The static site: the player and all recorded runs as files that any web server can hand out, with no engine behind them.

As a program: python -m viz.player.static [folder, default dist]
"""

import json
import shutil
import sys
from pathlib import Path

from engine.cache_types import CacheRun
from engine.prefix.cachefile import load_cache_run
from engine.results import ResultSet
from engine.resultsfile import RESULTS_DIR, load_results
from engine.runfile import load_run
from engine.scenarios import OPENING
from engine.session import as_replay
from engine.types import Run
from viz import theme
from viz.player.assets import common_options, style
from viz.player.bundle import bundle
from viz.player.export import export_film, export_html
from viz.player.grid import time_points
from viz.player.pack import pack_run
from viz.player.pack_cache import pack_film
from viz.player.page import PAGE_STYLE, linked_page

RUNS_DIR = Path(__file__).resolve().parents[2] / "assets" / "runs"
FILMS_DIR = Path(__file__).resolve().parents[2] / "assets" / "evict"
SUFFIX, FILM_SUFFIX = ".run.json.gz", ".cache.json.gz"
# Loads that cache runs are shipped of; any other has its own name for a title.
TITLES = {
    "balanced": {
        "en": "Balanced: half chats, half single questions",
        "es": "Equilibrada: mitad chats, mitad preguntas sueltas",
        "de": "Ausgewogen: halb Chats, halb einzelne Fragen",
        "zh": "均衡：一半聊天，一半单个问题",
    },
    "tool_use": {
        "en": "Tool use behind one long prompt",
        "es": "Herramientas tras un prompt largo",
        "de": "Werkzeuge hinter einem langen Prompt",
        "zh": "同一个长提示后的工具调用",
    },
}
SHELL = "shell/static.js"


def write_site(
    target: Path, runs_dir: Path = RUNS_DIR, results: Path = RESULTS_DIR / "scenarios.json", films_dir: Path = FILMS_DIR
) -> list[Path]:
    """Writes the site into `target`, which is emptied first where it is one of ours, and returns the files written.

    Args:
        films_dir: of cache runs; those of one load are one film.
    """
    _make_room(target)
    measured = load_results(results) if results.is_file() else None
    paths = sorted(runs_dir.glob(f"*{SUFFIX}"), key=lambda path: (path.name != f"{OPENING}{SUFFIX}", path.name))
    runs = {path.name.removesuffix(SUFFIX): as_replay(load_run(path)) for path in paths}
    assert runs, f"no recorded run in {runs_dir}"
    _write(target / "player.js", bundle(SHELL).encode())
    _write(target / "player.css", (PAGE_STYLE + style()).encode())
    _write(target / "index.html", linked_page("player.js", "player.css").encode())
    for name, run in runs.items():
        _write_run(target, name, run, runs_dir, measured)
    films = load_films(films_dir)
    for name, film in films.items():
        _write_film(target, name, film)
    _write(target / "site.json", _json(_site(runs, measured, films)))
    return sorted(path for path in target.rglob("*") if path.is_file())


def _write_run(target: Path, name: str, run: Run, runs_dir: Path, measured: ResultSet | None) -> None:
    _write(target / "runs" / f"{name}.json", _json(pack_run(run)))
    _write(target / "runs" / f"{name}{SUFFIX}", (runs_dir / f"{name}{SUFFIX}").read_bytes())
    _write(target / "runs" / f"{name}.html", export_html(run, time_points(measured, run)).encode())


def load_films(folder: Path) -> dict[str, dict[Path, CacheRun]]:
    """Returns the cache runs of a folder with their files, by load."""
    films: dict[str, dict[Path, CacheRun]] = {}
    for path in sorted(folder.glob(f"*{FILM_SUFFIX}")):
        run = load_cache_run(path)
        films.setdefault(run.workload, {})[path] = run
    names = theme.policy_order({run.policy for film in films.values() for run in film.values()})
    return {name: dict(sorted(film.items(), key=lambda item: names.index(item[1].policy))) for name, film in films.items()}


def _write_film(target: Path, name: str, film: dict[Path, CacheRun]) -> None:
    title, runs = TITLES.get(name, name), list(film.values())
    files = {run.policy: path.read_bytes() for path, run in film.items()}
    _write(target / "films" / f"{name}.json", _json(pack_film(runs, title)))
    for policy, raw in files.items():
        _write(target / "films" / f"{name}-{policy}{FILM_SUFFIX}", raw)
    _write(target / "films" / f"{name}.html", export_film(runs, files, title).encode())


def _film_entry(name: str, film: dict[Path, CacheRun]) -> dict[str, object]:
    return {
        "id": name,
        "tab": "evict",
        "title": TITLES.get(name, name),
        "packed": f"films/{name}.json",
        "files": {run.policy: f"films/{name}-{run.policy}{FILM_SUFFIX}" for run in film.values()},
        "html": f"films/{name}.html",
    }


def _site(runs: dict[str, Run], measured: ResultSet | None, films: dict[str, dict[Path, CacheRun]]) -> dict[str, object]:
    """Returns the options of `mount` and where the runs lie."""
    policies = [run.policy for film in films.values() for run in film.values()]
    methods = [method.method for run in runs.values() for method in run.methods]
    options = common_options(methods, policies, ("tour", "evict_tour") if films else ("tour",))
    entries = [
        {
            "id": run.scenario or name,
            "title": run.question,
            "packed": f"runs/{name}.json",
            "file": f"runs/{name}{SUFFIX}",
            "html": f"runs/{name}.html",
        }
        for name, run in runs.items()
    ]
    first = next(
        (scene["scenario"] for scene in options["tour"] if any(entry["id"] == scene["scenario"] for entry in entries)), entries[0]["id"]
    )
    entries += [_film_entry(name, film) for name, film in films.items()]
    return {**options, "runs": entries, "first": first, "times": time_points(measured, next(iter(runs.values())))}


def _make_room(target: Path) -> None:
    """Empties a folder that holds an older site; any other folder with something in it is left alone, by an error."""
    if target.exists() and any(target.iterdir()):
        if not (target / "site.json").is_file():
            raise SystemExit(f"{target} is not empty and not a site of ours; choose another folder.")
        shutil.rmtree(target)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _json(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def main(folder: str = "dist") -> None:
    """Writes the site and says how large it is."""
    files = write_site(Path(folder))
    print(f"{folder}: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
