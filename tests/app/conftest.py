"""One browser for all tests of the page; they skip, naming it, where there is none."""

import pytest
from launch import CHROMIUM, CHROMIUM_ARGS


@pytest.fixture(scope="session")
def browser():
    if not CHROMIUM.is_file():
        pytest.skip(f"needs Chromium at {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_ARGS)
        yield found
        found.close()
