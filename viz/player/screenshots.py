"""Pictures of the static site and of the page: every width, look and kind of sight, and a replay that moves, for README and for judging.

As a program: python -m viz.player.screenshots [folder, default assets/screenshots]. It starts the page itself and shows recorded runs only.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from viz.player.shooting import Picture, file_server, moving, page_server, small_png, tools
from viz.player.static import write_site

FOLDER: Final = Path(__file__).resolve().parents[2] / "assets" / "screenshots"
SIZES: Final = ((1920, 1080), (1280, 720), (390, 844))
LOOKS: Final = ("light", "dark", "deuteranopia")
SCENARIO: Final = "servo-manual"
VIEW: Final = f"sc={SCENARIO}&m=full,cacheblend,qcfuse&look=qcfuse"
PLAYER_READY: Final = "() => Boolean(window.fusescope) && performance.getEntriesByName('fusescope:first-picture').length > 0"
# Middle of the last phase: some layers are done, the others loaded.
SEEK_MIDDLE: Final = """() => {
  const method = window.fusescope.run().methods.find(({ name }) => name === "qcfuse");
  const spans = method.spans.filter((span) => span.stage === "recompute");
  window.fusescope.dispatch({ type: "seek", time: (spans[0].start_s + spans[spans.length - 1].end_s) / 2 });
}"""
DRAWN: Final = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"
CLOCK_END: Final = """() => {
  window.fusescope.dispatch({ type: "seek", time: 1e9 });
  return window.fusescope.state().time;
}"""
# Tall enough for the map, all lanes and the answers.
MOVIE_SIZE: Final = (1280, 1262)
FRAMES_PER_S, SLOWED, HOLD_S = 10, 4, 2.0


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: `place` is "site", "play" or "fuse"; `look` is one of LOOKS."""

    place: str
    size: tuple[int, int]
    look: str

    @property
    def name(self) -> str:
        """Returns the file's name."""
        return f"{self.place}-{self.size[0]}x{self.size[1]}-{self.look}.png"

    @property
    def query(self) -> str:
        """Returns the address's query."""
        theme = "dark" if self.look == "dark" else "light"
        if self.place == "site":
            return f"{VIEW}&theme={theme}"
        return f"__theme={theme}&sc={SCENARIO}" if self.place == "fuse" else f"__theme={theme}&tab=play&{VIEW}"


def shots() -> tuple[Shot, ...]:
    """Returns all pictures: the site and the page's first tab everywhere, the player inside the page once a size."""
    every = [Shot(place, size, look) for place in ("site", "fuse") for size in SIZES for look in LOOKS]
    return (*every, *(Shot("play", size, "light") for size in SIZES))


def shoot(browser: Any, url: str, shot: Shot) -> bytes:
    """Returns a picture as PNG, small enough for a repository."""
    deuteranopia = shot.look == "deuteranopia"
    with Picture(browser, shot.size, "deuteranopia" if deuteranopia else None) as picture:
        picture.page.goto(f"{url}?{shot.query}")
        if shot.place == "fuse":
            picture.page.locator("#fuse-kv .js-plotly-plot .main-svg").first.wait_for(timeout=120_000)
        else:
            picture.wait(PLAYER_READY)
            picture.page.evaluate(SEEK_MIDDLE)
        picture.page.evaluate(DRAWN)
        picture.page.wait_for_timeout(600)
        return small_png(picture.page.screenshot())


def film(browser: Any, url: str) -> bytes:
    """Returns a replay as animated WebP, as much slower than measured as the player says on it."""
    with Picture(browser, MOVIE_SIZE, None) as picture:
        picture.page.goto(f"{url}?{VIEW}&theme=light")
        picture.wait(PLAYER_READY)
        return moving(_frames(picture.page), 1000 // FRAMES_PER_S, int(HOLD_S * 1000))


def _frames(page: Any) -> Iterator[bytes]:
    end, step = float(page.evaluate(CLOCK_END)), 1 / (FRAMES_PER_S * SLOWED)
    for i in range(int(end / step) + 2):
        page.evaluate("(time) => window.fusescope.dispatch({ type: 'seek', time })", min(end, i * step))
        page.evaluate(DRAWN)
        yield page.screenshot()


def write_pictures(folder: Path) -> list[Path]:
    """Writes all pictures into `folder` and returns them. Raises SystemExit with one sentence where a tool is missing."""
    start_browser = tools()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with tempfile.TemporaryDirectory() as site, start_browser() as browser:
        write_site(Path(site))
        with file_server(Path(site)) as site_url, page_server() as page_url:
            for shot in shots():
                path = folder / shot.name
                path.write_bytes(shoot(browser, site_url if shot.place == "site" else page_url, shot))
                written.append(path)
            (folder / "replay.webp").write_bytes(film(browser, site_url))
    return [*written, folder / "replay.webp"]


def main(folder: str = str(FOLDER)) -> None:
    """Writes the pictures and says how large each is."""
    os.environ.setdefault("NO_PROXY", "localhost,127.0.0.1")
    for path in write_pictures(Path(folder)):
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
