"""The game "beat the policy": ten blocks to evict, then the same ten moments as LRU, SAECache and MIN chose. Builds, wires, words."""

from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.eviction_game import NEVER, PLAYERS, Card, EvictionGame, Moment
from viz import theme
from viz.figures.words import seconds
from viz.panels.contract import ReplaysLike
from viz.panels.evict_players import evict_player
from viz.panels.players import pack

WORKLOAD, CAPACITY = "balanced", 0.05
MAX_SEED = 999
TITLES = {
    "system": "A system prompt",
    "user": "A user's message",
    "tool output": "What a tool returned",
    "response": "A model's answer",
    "thinking": "A model's thoughts",
}
SESSIONS = {
    "chat": "of a chat that goes on",
    "agent": "of an agent at work",
    "structural": "behind a template that many share",
    "evict first": "of a session that seems over",
}


def build_game(replays: ReplaysLike, opened: gr.Tab, quiet: dict[str, Any]) -> gr.HTML:
    """Builds the game; it is dealt when its tab is opened. Call inside that tab."""
    game = evict_player("game", "evict-game", "Beat the policy")
    seed = gr.State(None)

    def deal(known: int | None) -> list[Any]:
        return [gr.skip(), gr.skip()] if known is not None else _dealt(replays, 0)

    def again(known: int | None) -> list[Any]:
        return _dealt(replays, (0 if known is None else known + 1) % MAX_SEED)

    opened.select(deal, [seed], [game, seed], **quiet)
    game.again(again, [seed], [game, seed], **quiet)
    return game


def _dealt(replays: ReplaysLike, seed: int) -> list[Any]:
    """Returns the value of the player, and the seed."""
    try:
        game = replays.game(WORKLOAD, CAPACITY, seed % 3)
    except EngineError as error:
        gr.Warning(str(error).replace("<", "‹").replace(">", "›"), title="No game")
        return [pack({"reason": str(error)}), seed]
    return [pack(game_data(game)), seed]


def game_data(game: EvictionGame) -> dict[str, Any]:
    """Returns the game in words."""
    players = [{"key": name, "label": theme.policy_style(name).label, "color": theme.policy_style(name).color} for name in PLAYERS]
    return {
        "badge": "SIMULATED",
        "details": f"load “{game.workload}”, cache of {game.capacity_blocks:,} blocks, seed {game.seed}",
        "players": [{**player, "lost": game.num_lost(player["key"])} for player in players],
        "moments": [_moment(moment) for moment in game.moments],
        "note": (
            "The moments are spread evenly over the second half of the load, whatever comes out, with the cache as SAECache left it, "
            "its home ground. On the table: the choices of LRU, SAECache and MIN among all blocks that may leave, one that will be "
            "asked for again, and others drawn at random. MIN knows the future; nobody can do better."
        ),
    }


def _moment(moment: Moment) -> dict[str, Any]:
    return {"title": f"Request {moment.request:,}", "cards": [_card(card) for card in moment.cards], "choices": moment.choices}


def _card(card: Card) -> dict[str, Any]:
    used = "never asked for again since" if not card.hits else f"asked for {card.hits:,} time{'' if card.hits == 1 else 's'} since"
    by = "one session" if card.num_sessions <= 1 else f"{card.num_sessions:,} changes of session"
    back = card.next_request != NEVER
    return {
        "title": TITLES[card.kind],
        "session": SESSIONS[card.queue],
        "facts": [
            f"not used for {seconds(card.idle_s)}",
            f"{used} it came in",
            f"used by {by}",
            f"{card.start_tokens:,} tokens into the prompt",
        ],
        "lost": back,
        "outcome": f"asked for again {seconds(card.next_s)} later" if back else "never asked for again",
    }
