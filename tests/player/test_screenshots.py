"""The pictures of README: which there are, how small they get, and what is said where a tool is missing."""

import importlib.util
import io
import shutil

import numpy as np
import pytest
from PIL import Image

from viz.player import screenshots, shooting
from viz.player.screenshots import LOOKS, SIZES, Shot, shoot, shots

NOISE = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)


def png(pixels):
    packed = io.BytesIO()
    Image.fromarray(pixels).save(packed, "PNG")
    return packed.getvalue()


def test_every_size_and_look_is_shot_and_no_name_twice():
    taken = shots()
    for place in ("site", "fuse"):
        assert {(shot.size, shot.look) for shot in taken if shot.place == place} == {(size, look) for size in SIZES for look in LOOKS}
    assert len({shot.name for shot in taken}) == len(taken)
    assert {shot.size for shot in taken if shot.place == "play"} == set(SIZES)


def test_a_picture_keeps_its_size_and_loses_colours_until_it_fits():
    plain = np.zeros((300, 400, 3), dtype=np.uint8)
    plain[:, 200:] = (230, 159, 0)
    small = Image.open(io.BytesIO(shooting.small_png(png(plain))))
    assert small.size == (400, 300) and small.convert("RGB").getpixel((300, 10)) == (230, 159, 0)
    sizes = [len(shooting.small_png(png(NOISE), limit)) for limit in (10**6, 115_000, 85_000)]
    assert sizes[0] > sizes[1] > sizes[2] and sizes[1] <= 115_000 and sizes[2] <= 85_000
    with pytest.raises(SystemExit, match="does not fit 1,000 bytes"):
        shooting.small_png(png(NOISE), 1000)


def test_a_film_shows_every_frame_as_long_as_it_should():
    frames = [png(np.full((40, 60, 3), value, dtype=np.uint8)) for value in (0, 90, 180)]
    film = Image.open(io.BytesIO(shooting.moving(iter(frames), 100, 2000)))
    assert film.n_frames == 3 and film.size == (60, 40)
    durations = []
    for i in range(film.n_frames):
        film.seek(i)
        film.load()
        durations.append(film.info["duration"])
    assert durations == [100, 100, 2000]
    with pytest.raises(SystemExit, match="do not fit 1,000 bytes"):
        shooting.moving(iter([png(NOISE)] * 2), 100, 2000, 1000)


@pytest.mark.parametrize(("missing", "sentence"), [("playwright", "need playwright: pip install"), ("PIL", "need pillow: pip install")])
def test_a_missing_package_is_one_sentence(monkeypatch, missing, sentence):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(SystemExit, match=sentence):
        shooting.tools()


def test_a_missing_browser_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="need a browser and found none of chromium"):
        screenshots.write_pictures(tmp_path)


@pytest.mark.browser
def test_the_site_is_shot_as_eyes_without_green_see_it(browser, site):
    pictures = {}
    for look in ("light", "deuteranopia", "dark"):
        shot = Shot("site", (1280, 720), look)
        taken = shoot(browser, site, shot)
        assert len(taken) <= shooting.MAX_PNG_BYTES
        pictures[look] = np.asarray(Image.open(io.BytesIO(taken)).convert("RGB"), dtype=np.int16)
        assert pictures[look].shape == (720, 1280, 3)
    light, blind, dark = pictures.values()
    assert dark.mean() < 80 < light.mean()
    # The recomputed tokens' orange (230, 159, 0) stays apart from the loaded ones' blue, but is no longer itself.
    orange = (np.abs(light - (230, 159, 0)) < 12).all(axis=-1)
    assert orange.sum() > 500 and np.abs(blind[orange] - light[orange]).max(axis=-1).mean() > 15
