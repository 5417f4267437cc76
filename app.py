"""Starts Fusescope: settings, session, page, server. Nothing else happens here."""

import os
import sys


def main() -> int:
    """Serves the page until it is interrupted; returns the exit code."""
    # Gradio reads these when it is imported.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    _bypass_proxy_for_localhost()
    from engine.errors import EngineError
    from engine.session import Session
    from engine.settings import Settings
    from viz.panels.page import build, launch_options

    try:
        settings = Settings.from_env()
        session = Session(settings)
    except EngineError as error:
        print(f"fusescope: {error}", file=sys.stderr)
        return 2
    print(f"Fusescope: http://{settings.host}:{settings.port}", flush=True)
    page = build(session)
    try:
        page.launch(server_name=settings.host, server_port=settings.port, quiet=True, prevent_thread_lock=True, **launch_options())
    except OSError as error:
        print(f"fusescope: {settings.host}:{settings.port} cannot be served ({error}); set PORT to a free port.", file=sys.stderr)
        return 2
    # The model loads once the page answers, so that nobody waits for it with an empty browser.
    session.preload()
    page.block_thread()
    return 0


def _bypass_proxy_for_localhost() -> None:
    """Keeps Gradio's start-up check of its own address away from a proxy."""
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in os.environ.get(name, "").split(",") if host]
        os.environ[name] = ",".join(dict.fromkeys([*hosts, "localhost", "127.0.0.1"]))


if __name__ == "__main__":
    raise SystemExit(main())
