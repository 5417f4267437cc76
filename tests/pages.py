"""Pages of a browser, used again by one test after the other: the process of a page knows the scripts from the time before.

A page is new to each test: it comes from about:blank, its storage is empty, nobody else listens to it. What a test that failed has
borrowed for itself is thrown away; a page that tests share goes on, so each of them comes to where it starts by itself.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

BLANK = "about:blank"


@contextlib.contextmanager
def borrowed_page(
    browser: Any, width: int, height: int, motion: str, listeners: dict[str, Any], timeout_ms: float, is_new: bool = False
) -> Iterator[Any]:
    """Yields a page of its own context with a window of this size, and hears its events until it is given back.

    Args:
        motion: "reduce" or "no-preference".
        listeners: by the name of the page's event.
        is_new: whether to take no page that was used before, for what measures a first visit.
    """
    idle = [context.pages[0] for context in browser.contexts if [page.url for page in context.pages] == [BLANK]]
    page = idle[0] if idle and not is_new else _new_page(browser)
    page.context.set_default_timeout(timeout_ms)
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(reduced_motion=motion)
    page.mouse.move(0, 0)
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield page
        page.unroute_all()
        page.context.set_offline(False)
        page.evaluate("() => { if (window.origin !== 'null') { sessionStorage.clear(); localStorage.clear(); } }")
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto(BLANK)
    except BaseException:
        page.context.close()
        raise


def _new_page(browser: Any) -> Any:
    context = browser.new_context(accept_downloads=True, locale="en-GB", permissions=["clipboard-read", "clipboard-write"])
    return context.new_page()
