"""The Fuse tab: builds its two columns and wires them to the callbacks."""

import gradio as gr

from engine.types import Run
from viz.panels.address import UNSEEN, run_of_link
from viz.panels.contract import RunFiles, SessionLike
from viz.panels.fuse_callbacks import FuseCallbacks
from viz.panels.fuse_controls import Controls, build_controls
from viz.panels.fuse_flip import wire_flip
from viz.panels.fuse_results import Results, build_results
from viz.panels.live import idle_buttons
from viz.panels.players import player
from viz.panels.run_viewer import RunViewer

QUIET = {"show_progress": "hidden", "api_visibility": "private"}
# The session itself runs one request at a time and tells every other one its place; the limit only bounds who may wait.
ENGINE = {"concurrency_id": "engine", "concurrency_limit": 16}


def build_fuse(session: SessionLike, files: RunFiles, page: gr.Blocks, tabs: gr.Tabs, tab: gr.Tab) -> RunViewer:
    """Builds the tab and returns what other tabs show runs with. Call inside `tab`, one of `tabs` of `page`."""
    back = gr.Button("← Back to chat", elem_id="fuse-back", size="md", visible=False)
    banner = player("banner", "fuse-banner", "Result")
    with gr.Row(elem_id="fuse-columns"):
        with gr.Column(scale=0, min_width=340, elem_id="fuse-controls", elem_classes="fs-panel"):
            controls = build_controls(session)
        with gr.Column(scale=1, min_width=320, elem_id="fuse-results"):
            results = build_results(session)
    names = [scenario.name for scenario in session.scenarios()]
    shown, seen = gr.State(None), gr.State(0)
    linked = page.load(run_of_link(names, tabs), None, [controls.scenario, shown], queue=False, **QUIET)
    # Queued: Gradio 6.31 tells of a changed state through its queue alone.
    tab.select(lambda shown, seen: seen + 1 if shown == UNSEEN else gr.skip(), [shown, seen], [seen], **QUIET)
    return _wire(FuseCallbacks(session, files), controls, results, banner, back, shown, linked, seen)


def _wire(
    calls: FuseCallbacks,
    controls: Controls,
    results: Results,
    banner: gr.HTML,
    back: gr.Button,
    shown: gr.State,
    linked: gr.events.Dependency,
    seen: gr.State,
) -> RunViewer:
    run, job, lent = gr.State(None), gr.State(None), gr.State(None)
    buttons = [controls.run, controls.stop]
    show_in = [run, shown, results.method]
    show_out = [
        banner,
        shown,
        results.method,
        results.preview,
        results.preview_note,
        results.download,
        controls.model_line,
        *results.of_run,
        *results.of_method,
        *results.of_choices,
    ]
    flipped = wire_flip(calls.session, results.flip, run, shown, ENGINE)

    def show(event: gr.events.Dependency) -> gr.events.Dependency:
        event.then(_way_back, [run, lent], [back], queue=False, **QUIET)
        return flipped.after(event.then(calls.show, show_in, show_out, **QUIET))

    def show_scenario(event: gr.events.Dependency) -> gr.events.Dependency:
        return show(event.then(calls.choose_scenario, [controls.scenario], chosen_out, queue=False, **QUIET))

    begun = controls.run.click(calls.begin, [controls.scenario, *controls.form], [results.status, job, *buttons], queue=False, **QUIET)
    engine = begun.then(
        calls.run,
        [job],
        [results.status, run],
        show_progress="minimal",
        show_progress_on=results.status,
        api_name="stream",
        api_visibility="private",
        **ENGINE,
    )
    engine.failure(calls.ended_early, [job], [results.status], queue=False, **QUIET)
    show(engine).then(idle_buttons, None, buttons, queue=False, **QUIET)
    stopped = controls.stop.click(calls.stopped, None, [results.status, job, *buttons], cancels=[engine], queue=False, **QUIET)
    stopped.then(calls.settled, None, [results.status, *buttons], queue=False, **QUIET)

    chosen_out = [controls.scenario, controls.question, controls.chunks, run, results.status]
    opened = linked.then(calls.choose_scenario, [controls.scenario], chosen_out, queue=False, **QUIET)
    flipped.after(opened.then(calls.open, show_in, show_out, **QUIET))
    flipped.after(seen.change(calls.show, show_in, show_out, **QUIET))
    show(controls.scenario.input(calls.choose_scenario, [controls.scenario], chosen_out, queue=False, **QUIET))

    look_in, look_out = [run, results.method, results.preview], [results.preview_note, *results.of_method]
    results.method.input(calls.look, look_in, look_out, trigger_mode="always_last", **QUIET)
    results.preview.input(calls.preview, look_in, [*look_out, *results.of_choices], trigger_mode="always_last", **QUIET)

    show(results.upload.upload(calls.open_file, [results.upload], [results.status, run], **QUIET))
    controls.load.click(calls.load_model, [controls.model], [results.status, controls.model_line], **QUIET, **ENGINE)
    timer = gr.Timer(2.0)
    timer.tick(calls.refresh_model_line, None, [controls.model_line, timer], queue=False, **QUIET)

    def look(event: gr.events.Dependency) -> gr.events.Dependency:
        return event.then(calls.preview, look_in, [*look_out, *results.of_choices], **QUIET)

    return RunViewer(
        scenario=controls.scenario,
        method=results.method,
        preview=results.preview,
        show=show_scenario,
        look=look,
        run=run,
        show_run=show,
        status=results.status,
        pair=flipped.pair,
        opened=opened,
        measured=engine,
        lent=lent,
        back=back,
    )


def _way_back(run: Run | None, lent: Run | None) -> gr.Button:
    """Returns the button that leads back, to be seen while the run that is shown came from another tab."""
    return gr.Button(visible=run is not None and run is lent)
