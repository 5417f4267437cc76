"""Which models a selector offers, and whether another one may be typed. Knows nothing of Gradio."""

from typing import Any

from viz.panels.contract import SessionLike


def model_offer(session: SessionLike, what: str) -> dict[str, Any]:
    """Returns the settings of a model selector that depend on who may come in: strangers choose among the listed models alone.

    Args:
        what: what choosing does, as half a sentence.
    """
    names = list(session.model_names())
    offer: dict[str, Any] = {"choices": names, "value": session.settings.model}
    if not session.settings.protection.public:
        return {**offer, "allow_custom_value": True, "info": f"A name, a Hugging Face id or a local path; {what}."}
    if len(names) == 1:
        return {**offer, "interactive": False, "info": "The one model that this server offers."}
    return {**offer, "filterable": False, "info": f"One of those that this server offers; {what}."}
