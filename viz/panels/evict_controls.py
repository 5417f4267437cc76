"""What is set on the Evict tab: load, capacity, policies, seeds, files."""

from dataclasses import dataclass

import gradio as gr

from viz.panels.contract import ReplaysLike
from viz.panels.evict_form import FIRST_POLICIES, FIRST_PREDICTOR, FIRST_WORKLOAD, MAX_SEEDS, PREDICTORS, policy_choices, workload_choices


@dataclass(frozen=True, slots=True)
class EvictControls:
    """The components that say what to replay."""

    workload: gr.Dropdown
    slider: gr.Slider
    capacity: gr.Textbox
    policies: gr.CheckboxGroup
    seeds: gr.Slider
    predictor: gr.Dropdown
    replay: gr.Button
    stop: gr.Button
    open_log: gr.UploadButton
    open_runs: gr.UploadButton


def build_evict_controls(replays: ReplaysLike) -> EvictControls:
    """Builds the controls. Call inside their column."""
    with gr.Row(elem_classes="fs-toolbar"):
        workload = gr.Dropdown(
            workload_choices(replays),
            value=FIRST_WORKLOAD,
            label="Load",
            info="Generated from seeds, or your own log.",
            elem_id="evict-workload",
            filterable=False,
            min_width=280,
            scale=3,
        )
        slider = gr.Slider(
            0.5,
            60,
            value=5,
            step=0.5,
            label="Capacity, % of the distinct blocks",
            info="Moving it replays at once.",
            buttons=[],
            elem_id="evict-slider",
            min_width=260,
            scale=3,
        )
        capacity = gr.Textbox(
            "5 %", label="or exactly", info="As 2.5 %, or 4000 blocks.", max_lines=1, elem_id="evict-capacity", min_width=150, scale=1
        )
        with gr.Column(min_width=200, scale=1, elem_classes="fs-evict-go"):
            replay = gr.Button("Replay", variant="primary", elem_id="evict-replay")
            stop = gr.Button("Stop", elem_id="evict-stop")
    with gr.Accordion("Policies, seeds, predictor, files", open=False, elem_id="evict-more"):
        policies = gr.CheckboxGroup(
            policy_choices(replays), value=list(FIRST_POLICIES), label="Policies beside LRU and MIN", elem_id="evict-policies"
        )
        with gr.Row(elem_classes="fs-toolbar"):
            seeds = gr.Slider(
                1,
                MAX_SEEDS,
                value=1,
                step=1,
                label="Seeds",
                info="Several show how much is chance.",
                buttons=[],
                elem_id="evict-seeds",
                min_width=220,
            )
            predictor = gr.Dropdown(
                list(PREDICTORS),
                value=FIRST_PREDICTOR,
                label="Predictor of who comes back",
                info="Simulated: the truth, wrong as often as said; or a rule.",
                elem_id="evict-predictor",
                filterable=False,
                min_width=220,
            )
        with gr.Row(elem_classes="fs-buttons"):
            open_log = gr.UploadButton(
                "Open your own log",
                elem_id="evict-open-log",
                size="md",
                type="filepath",
                file_types=[".jsonl", ".json", ".csv", ".gz"],
                scale=0,
                min_width=220,
            )
            open_runs = gr.UploadButton(
                "Open cache runs",
                elem_id="evict-open-runs",
                size="md",
                type="binary",
                file_count="multiple",
                file_types=[".gz"],
                scale=0,
                min_width=220,
            )
        gr.HTML(
            "<p class='fs-note fs-muted'>Logs: Mooncake, Qwen-Bailian, Azure, compact agent sessions, or chats as JSON lines; plain or "
            ".gz, 64 MB at most. Cache runs: files saved here.</p>",
            apply_default_css=False,
            js_on_load=None,
        )
    return EvictControls(workload, slider, capacity, policies, seeds, predictor, replay, stop, open_log, open_runs)
