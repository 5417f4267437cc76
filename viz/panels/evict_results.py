"""What the Evict tab shows: pictures of all policies, and of one from inside. Each picture has its numbers in words below it."""

from dataclasses import dataclass

import gradio as gr

from viz.panels.evict_players import evict_player
from viz.panels.parts import plot
from viz.panels.players import player


@dataclass(frozen=True, slots=True)
class Rates:
    """Pictures that compare policies; `of_unit` and `of_setting` in the order of RatesView and of SettingView behind its banner."""

    unit: gr.Radio
    sweep: gr.Button
    of_unit: list[gr.Plot | gr.HTML]
    of_setting: list[gr.Plot | gr.HTML]


@dataclass(frozen=True, slots=True)
class Inside:
    """Pictures of one policy; `of_policy` in the order of PolicyView."""

    policy: gr.Radio
    moment: gr.Slider
    ask: gr.Button
    victims: gr.HTML
    download: gr.DownloadButton
    of_policy: list[gr.Plot | gr.HTML]


@dataclass(frozen=True, slots=True)
class EvictResults:
    """Everything that shows something."""

    banner: gr.HTML
    status: gr.HTML
    rates: Rates
    inside: Inside


def build_rates() -> Rates:
    """Builds what compares the policies. Call inside its tab."""
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            rate, rate_words = plot("evict-rate"), _words("evict-rate-words")
            with gr.Row(elem_classes="fs-toolbar"):
                unit = gr.Radio([("tokens", "tokens"), ("blocks", "blocks")], value="tokens", label="Count hits in", elem_id="evict-unit")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            capacity, capacity_words = plot("evict-curve"), _words("evict-curve-words")
            sweep = gr.Button("Draw the whole curve", elem_id="evict-sweep", size="md", scale=0, min_width=220)
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            time, time_words = plot("evict-time"), _words("evict-time-words")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            misses, misses_words = plot("evict-misses"), _words("evict-misses-words")
    with gr.Column(elem_classes="fs-panel"):
        results = player("table", "evict-results", "Every policy")
        with gr.Accordion("Why tokens were missed, as numbers", open=False, elem_classes="fs-evict-fold"):
            missed = player("table", "evict-missed", "Prompt tokens by what became of them")
    how = player("note", "evict-how", "How this was measured")
    of_setting = [capacity, capacity_words, misses, misses_words, results, missed, how]
    return Rates(unit, sweep, [rate, rate_words, time, time_words], of_setting)


def build_inside() -> Inside:
    """Builds what looks into one policy. Call inside its tab."""
    with gr.Row(elem_classes="fs-toolbar"):
        policy = gr.Radio([], label="Policy to look into", elem_id="evict-policy", scale=3)
        download = gr.DownloadButton("Download this cache run", elem_id="evict-download", size="md", scale=0, min_width=240)
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            occupancy, occupancy_words = plot("evict-occupancy"), _words("evict-occupancy-words")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            regret, regret_words = plot("evict-regret"), _words("evict-regret-words")
            cases = evict_player("regret", "evict-regret-cases", "Who suffered")
    with gr.Column(elem_classes="fs-panel"):
        with gr.Row(elem_classes="fs-toolbar"):
            moment = gr.Slider(
                0,
                1,
                value=0,
                step=1,
                label="Who leaves next, from request",
                info="Move it to ask at another moment.",
                buttons=[],
                elem_id="evict-moment",
                min_width=280,
                scale=3,
            )
            ask = gr.Button("Ask the policy", elem_id="evict-ask", size="md", scale=0, min_width=180)
        victims = player("table", "evict-victims", "Next to leave")
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            weights, weights_words = plot("evict-weights"), _words("evict-weights-words")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            kinds, kinds_words = plot("evict-kinds"), _words("evict-kinds-words")
            ages, ages_words = plot("evict-ages"), _words("evict-ages-words")
    with gr.Accordion("What the cache held, as numbers", open=False, elem_classes="fs-evict-fold"):
        contents = player("table", "evict-contents", "What the cache held")
    pictures = [occupancy, occupancy_words, regret, regret_words, cases, weights, weights_words, kinds, kinds_words, ages, ages_words]
    return Inside(policy, moment, ask, victims, download, [*pictures, contents])


def _words(elem_id: str) -> gr.HTML:
    """Builds the line that says a picture's numbers."""
    return player("note", elem_id, "The picture in words")
