"""Methods around a method: what a request may add to any rule, by name, as in "qcfuse+primed+k_shift"."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from engine.fusion.base import FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.model.prompt import Prompt
from engine.registry import Registry


@dataclass(frozen=True, slots=True)
class Wrapper(FusionMethod):
    """Does what its inner method does; subclasses change one thing. `label` is its name behind the inner method's."""

    label: ClassVar[str]

    inner: FusionMethod

    @property
    def name(self) -> str:  # type: ignore[override]
        """Returns the whole name, inner method first."""
        return f"{self.inner.name}+{self.label}"

    @property
    def reads_cache(self) -> bool:  # type: ignore[override]
        """Returns the inner method's."""
        return self.inner.reads_cache

    @property
    def chunk_context(self):  # type: ignore[no-untyped-def, override]
        """Returns the inner method's."""
        return self.inner.chunk_context

    @property
    def corrects_keys(self) -> bool:  # type: ignore[override]
        """Returns the inner method's."""
        return self.inner.corrects_keys

    @property
    def reweighs(self) -> bool:  # type: ignore[override]
        """Returns the inner method's."""
        return self.inner.reweighs

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the inner method's plan."""
        return self.inner.select(context)

    def rope_positions(self, prompt: Prompt) -> np.ndarray | None:
        """Returns the inner method's."""
        return self.inner.rope_positions(prompt)

    def params(self) -> dict[str, bool | float | int | str]:
        """Returns the inner method's parameters and its own."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "inner"}
        return {**self.inner.params(), **own}


WRAPPERS: Registry[Wrapper] = Registry("addition to a method")
