"""Starts Fusescope: settings, session, page, server. Nothing else happens here."""

import os
import sys
import warnings


def main() -> int:
    """Serves the page until it is interrupted; returns the exit code."""
    # Gradio reads these when it is imported.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    _bypass_proxy_for_localhost()
    _keep_files_apart()
    # A toast of an event outside Gradio's queue is printed instead; what a visitor wrote may be in it, and is on the page anyway.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"gradio\.helpers")
    from viz.panels.zerogpu import lent_gpu

    # Before torch and gradio are imported below: what lends a GPU patches both.
    gpu = lent_gpu()
    from engine.errors import EngineError
    from engine.serving.routes import app_options
    from engine.session import Session
    from engine.settings import Settings
    from viz.panels.page import build, engine_events, launch_options

    try:
        settings = Settings.from_env()
        session = Session(settings, gpu)
    except EngineError as error:
        print(f"fusescope: {error}", file=sys.stderr)
        return 2
    print(f"Fusescope: http://{settings.host}:{settings.port}", flush=True)
    page = build(session)
    api = app_options(session, engine_events(page), {number: event.api_name for number, event in page.fns.items()})
    look = launch_options(settings.protection.password)
    try:
        page.launch(server_name=settings.host, server_port=settings.port, quiet=True, prevent_thread_lock=True, app_kwargs=api, **look)
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


def _keep_files_apart() -> None:
    """Gives Gradio a folder of this user's own for uploads and downloads; its default is the first user's of a machine."""
    from viz.panels.own_folder import own_folder

    try:
        os.environ.setdefault("GRADIO_TEMP_DIR", str(own_folder("gradio")))
    except OSError as error:
        print(
            f"fusescope: there is no folder for uploads and downloads ({error}); set TMPDIR to one that you may write to.", file=sys.stderr
        )


if __name__ == "__main__":
    raise SystemExit(main())
