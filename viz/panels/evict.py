"""The Evict tab: policies of a prefix cache over one load, their limit, and a game. Builds and wires; the rest is beside it."""

from dataclasses import dataclass

import gradio as gr

from viz.panels.address import FIRST_VIEW, follow, load_of_link, tab_names
from viz.panels.contract import SessionLike
from viz.panels.evict_callbacks import EvictCallbacks
from viz.panels.evict_controls import EvictControls, build_evict_controls
from viz.panels.evict_film import Follow, build_film
from viz.panels.evict_game import build_game
from viz.panels.evict_live import LivePart, build_live
from viz.panels.evict_live_callbacks import LiveCallbacks
from viz.panels.evict_results import EvictResults, build_inside, build_rates
from viz.panels.fuse import ENGINE
from viz.panels.players import player

QUIET = {"show_progress": "hidden", "api_visibility": "private"}
INTRO = """
<p class='fs-evict-intro'>A server keeps the KV cache of prompts it has seen, in blocks, so that the next prompt that begins alike
starts faster. When the cache is full a <strong>policy</strong> decides which block goes. MIN knows the future: no policy can do better.</p>
"""
# Where a page has a base, as Gradio's have, Plotly names its hatches by the page's whole address; they are lost once that changes, as it
# does with every tab here. This base says nothing that does not hold without it, and without it hatches are named within the page.
WITHOUT_BASE = """() => {
  const base = document.querySelector("base[href]");
  if (base && base.href === new URL("./", window.location.href).href) base.removeAttribute("href");
}"""


@dataclass(frozen=True, slots=True)
class _Tabs:
    rates: gr.Tab
    inside: gr.Tab
    film: gr.Tab
    live: gr.Tab
    game: gr.Tab


def build_evict(session: SessionLike, tab: gr.Tab, page: gr.Blocks) -> None:
    """Builds the tab and wires it. Call inside `tab`."""
    replays, board = session.replays, gr.State(None, time_to_live=3600)
    gr.HTML(INTRO, apply_default_css=False, js_on_load=None)
    banner = player("banner", "evict-banner", "Result")
    with gr.Column(elem_classes="fs-panel", elem_id="evict-controls"):
        controls = build_evict_controls(replays)
        status = player("status", "evict-status", "Status")
    with gr.Tabs(selected=FIRST_VIEW, overflow_behavior="wrap") as views:
        with gr.Tab("Who wins", id=FIRST_VIEW) as first:
            rates = build_rates()
        with gr.Tab("Why", id="inside") as second:
            inside = build_inside()
        with gr.Tab("Film", id="film") as film:
            show_film = build_film(replays, board, film)
        with gr.Tab("Live run", id="live") as third:
            live = build_live(session.live)
        with gr.Tab("Game", id="game") as fourth:
            build_game(replays, fourth, {**QUIET, **ENGINE})
    _wire(
        session,
        board,
        controls,
        EvictResults(banner, status, rates, inside),
        live,
        _Tabs(first, second, film, third, fourth),
        tab,
        show_film,
    )
    follow(views, controls.workload, "view", FIRST_VIEW)
    page.load(None, None, None, js=WITHOUT_BASE, queue=False, **QUIET)
    page.load(load_of_link(replays.workload_names(), tab_names(views)), None, [controls.workload, views], queue=False, **QUIET)


def _wire(
    session: SessionLike,
    board: gr.State,
    controls: EvictControls,
    results: EvictResults,
    live: LivePart,
    tabs: _Tabs,
    tab: gr.Tab,
    show_film: Follow,
) -> None:
    calls = EvictCallbacks(session.replays)
    shown, log, job = gr.State(None, time_to_live=3600), gr.State(None), gr.State(None)
    running, looked_at = gr.State(None), gr.State(False)
    rates, inside, status = results.rates, results.inside, results.status
    settings = [controls.policies, controls.seeds, controls.predictor]
    form = [running, controls.workload, log, controls.capacity, *settings]
    slid = [running, controls.workload, log, controls.slider, *settings]
    begun_out = [status, job, running]
    asked = [board, inside.policy, inside.moment]
    show_out = [shown, inside.policy, inside.download, inside.moment, *rates.of_unit, results.banner, *rates.of_setting, *inside.of_policy]

    def ask(event: gr.events.Dependency) -> gr.events.Dependency:
        return event.then(calls.victims, [*asked, looked_at], [inside.victims], trigger_mode="always_last", **QUIET, **ENGINE)

    def show(event: gr.events.Dependency) -> None:
        told = event.then(calls.show, [board, shown, inside.policy, rates.unit], show_out, **QUIET)
        show_film(told)
        ask(told)

    def replay(event: gr.events.Dependency) -> None:
        # The public endpoint is called `run`, so that this one must not be.
        named = {"api_name": "replay", "trigger_mode": "multiple", **QUIET, **ENGINE}
        show(event.then(calls.run, [job, running, board], [status, board], **named))

    show(tab.select(calls.open_tab, [board, controls.workload], [board, status, controls.slider], **QUIET))
    chosen = controls.workload.input(calls.choose, form, [board, controls.slider, controls.capacity, *begun_out], **QUIET)
    show(chosen)
    replay(chosen)
    replay(gr.on([controls.replay.click, controls.capacity.submit], calls.begin, form, begun_out, queue=False, **QUIET))
    replay(rates.sweep.click(calls.sweep, form, begun_out, queue=False, **QUIET))
    replay(controls.slider.input(calls.slide, slid, begun_out, queue=False, trigger_mode="always_last", **QUIET))
    controls.slider.input(None, [controls.slider], [controls.capacity], js="(value) => `${value} %`", queue=False, api_visibility="private")
    opened = controls.open_log.upload(calls.open_log, [controls.open_log], [log, controls.workload, status], queue=False, **QUIET)
    replay(opened.then(calls.begin, form, begun_out, queue=False, **QUIET))
    controls.stop.click(calls.stopped, [running], [status], queue=False, **QUIET)

    show(controls.open_runs.upload(calls.open_runs, [controls.open_runs], [status, board], **QUIET))
    rates.unit.input(calls.count, [board, rates.unit], rates.of_unit, trigger_mode="always_last", **QUIET)
    look_out = [inside.download, *inside.of_policy]
    ask(inside.policy.input(calls.look, [board, inside.policy], look_out, trigger_mode="always_last", **QUIET))
    for part, is_inside in ((tabs.rates, False), (tabs.inside, True), (tabs.film, False), (tabs.live, False), (tabs.game, False)):
        ask(part.select(lambda value=is_inside: value, None, [looked_at], queue=False, **QUIET))
    inside.moment.release(calls.victims, asked, [inside.victims], trigger_mode="always_last", **QUIET, **ENGINE)
    inside.ask.click(calls.ask, asked, [inside.victims], **QUIET, **ENGINE)

    lives, ask_live, live_runs = LiveCallbacks(session.live), gr.State(None), gr.State(None)
    begun = live.start.click(lives.begin, [live_runs, *live.form], [live.status, ask_live, live_runs], queue=False, **QUIET)
    served = begun.then(lives.run, [ask_live, live_runs], [live.status, *live.shown, board], trigger_mode="multiple", **QUIET, **ENGINE)
    show(served)
    live.stop.click(lives.stopped, [live_runs], [live.status], queue=False, **QUIET)
