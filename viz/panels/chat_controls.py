"""The right column of the Chat tab: how to answer, the conversation, the box to ask in."""

from dataclasses import dataclass

import gradio as gr

from engine.method_list import method_notes
from engine.prefix.policies import POLICIES
from viz import theme
from viz.panels.chat_form import MAX_CHUNKS
from viz.panels.chat_players import chat_player
from viz.panels.chat_view import prefix_words
from viz.panels.contract import SessionLike
from viz.panels.model_offer import model_offer
from viz.panels.players import player

FIRST_METHOD = "qcfuse"
POLICY_IN_USE = ("The one in use", "")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The components of the column."""

    model: gr.Dropdown
    method: gr.Dropdown
    ratio: gr.Slider
    num_chunks: gr.Slider
    model_line: gr.Textbox
    max_new_tokens: gr.Slider
    temperature: gr.Slider
    seed: gr.Number
    policy: gr.Dropdown
    new: gr.Button
    thread: gr.HTML
    live: gr.HTML
    status: gr.HTML
    question: gr.Textbox
    send: gr.Button
    stop: gr.Button
    prefix: gr.HTML

    def form(self, library: gr.Dropdown, shelf: gr.State) -> list[gr.blocks.Block]:
        """Returns the inputs of a question in the order of ChatForm's fields."""
        settings = [self.method, self.ratio, self.num_chunks, self.max_new_tokens, self.temperature, self.seed, self.policy]
        return [self.question, library, *settings, shelf]


def live_policies() -> tuple[str, ...]:
    """Returns the policies that a running cache can have: none that needs to know requests to come."""
    return tuple(name for name in theme.policy_order(POLICIES.names()) if not POLICIES.get(name).needs_future)


def method_rule(name: object) -> str:
    """Returns a method's own sentence, '' for what is no method's name."""
    return next((note.rule for note in method_notes() if note.name == name), "")


def build_conversation(session: SessionLike) -> Conversation:
    """Builds the column. Call inside a gr.Column."""
    names = theme.method_order(session.method_names())
    first = FIRST_METHOD if FIRST_METHOD in names else names[0]
    with gr.Row(elem_classes="fs-toolbar", elem_id="chat-toolbar"):
        method = gr.Dropdown(
            [(theme.method_label(name), name) for name in names],
            value=first,
            label="Cache mode",
            filterable=False,
            elem_id="chat-method",
            min_width=190,
            scale=2,
        )
        ratio = gr.Slider(0, 1, value=0.3, step=0.05, label="Recompute ratio", buttons=[], elem_id="chat-ratio", min_width=170, scale=2)
        num_chunks = gr.Slider(
            0, MAX_CHUNKS, value=5, step=1, label="Chunks per question", buttons=[], elem_id="chat-num-chunks", min_width=170, scale=2
        )
        new = gr.Button("New conversation", elem_id="chat-new", size="md", min_width=160, scale=1)
    with gr.Accordion("Model, answer length, prefix cache", open=False, elem_id="chat-more"):
        more = _build_more(session)
    with gr.Column(elem_id="chat-scroll", elem_classes="fs-panel"):
        thread = chat_player("thread", "chat-thread", "Conversation")
        live = chat_player("live", "chat-live", "Answer in progress")
    status = player("status", "chat-status", "Status")
    with gr.Row(elem_id="chat-composer"):
        question = gr.Textbox(
            label="Your question",
            placeholder="Ask about the library. Enter sends, Shift+Enter starts a new line.",
            lines=1,
            max_lines=6,
            elem_id="chat-question",
            min_width=240,
            scale=5,
        )
        send = gr.Button("Send", variant="primary", elem_id="chat-send", min_width=90, scale=1)
        stop = gr.Button("Stop", elem_id="chat-stop", min_width=80, scale=1, interactive=False)
    prefix = player("note", "chat-prefix", "Prefix cache", prefix_words(None))
    return Conversation(
        method=method,
        ratio=ratio,
        num_chunks=num_chunks,
        new=new,
        thread=thread,
        live=live,
        status=status,
        question=question,
        send=send,
        stop=stop,
        prefix=prefix,
        **more,
    )


def _build_more(session: SessionLike) -> dict[str, gr.blocks.Block]:
    is_public = session.settings.protection.public
    with gr.Row(elem_classes="fs-toolbar"):
        model = gr.Dropdown(
            label="Model", elem_id="chat-model", min_width=240, scale=2, **model_offer(session, "loaded at once; shared by all visitors")
        )
        line = gr.Textbox(
            session.model_line(), label="Model in use", interactive=False, max_lines=3, elem_id="chat-model-line", min_width=220, scale=2
        )
        policy = gr.Dropdown(
            [POLICY_IN_USE, *((theme.policy_style(name).label, name) for name in live_policies())],
            value="",
            label="Policy of the prefix cache",
            info="One for all visitors of this server, so it stays." if is_public else "Shared by all visitors: another one starts empty.",
            interactive=not is_public,
            filterable=False,
            elem_id="chat-policy",
            min_width=220,
            scale=2,
        )
    with gr.Row(elem_classes="fs-toolbar"):
        length = gr.Slider(1, 256, value=64, step=1, label="Answer length (tokens)", buttons=[], elem_id="chat-length", min_width=200)
        temperature = gr.Slider(
            0, 2, value=0, step=0.1, label="Temperature", info="0 is greedy.", buttons=[], elem_id="chat-temperature", min_width=200
        )
        seed = gr.Number(0, label="Seed", precision=0, elem_id="chat-seed", min_width=120)
    return {"model": model, "model_line": line, "policy": policy, "max_new_tokens": length, "temperature": temperature, "seed": seed}
