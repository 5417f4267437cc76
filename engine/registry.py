"""A named set of constructors; an unknown name lists the known ones."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from typing import Generic, TypeVar

from engine.errors import BadRequest, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Maps names to classes of one kind, filled by decorators when their modules are imported.

    Args:
        kind: what one entry is called in messages, e.g. "method".
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Returns a class decorator that files the class under `name`."""

        def file(cls: type[T]) -> type[T]:
            assert name not in self._classes, f"{self._kind} {name!r} is registered twice"
            self._classes[name] = cls
            return cls

        return file

    def names(self) -> tuple[str, ...]:
        """Returns the registered names in order of registration."""
        return tuple(self._classes)

    def get(self, name: str) -> type[T]:
        """Returns the class filed under `name`. Raises UnknownName."""
        if name not in self._classes:
            known = ", ".join(self._classes)
            raise UnknownName(f"Unknown {self._kind} {name!r}; known ones are: {known}.")
        return self._classes[name]

    def create(self, name: str, **params: object) -> T:
        """Returns a new entry built from `params`. Raises UnknownName, BadRequest."""
        cls = self.get(name)
        known = field_names(cls)
        for key in params:
            if key not in known:
                raise BadRequest(f"The {self._kind} {name!r} has no parameter {key!r}; it has: {', '.join(known) or 'none'}.")
        return cls(**params)


def field_names(cls: type) -> tuple[str, ...]:
    """Returns the names of a dataclass's own fields, () for other classes."""
    return tuple(field.name for field in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


def import_modules(package: str, paths: list[str]) -> None:
    """Imports every module of a package so that its decorators run; a new file is enough to add an entry."""
    for module in sorted(pkgutil.iter_modules(paths), key=lambda m: m.name):
        importlib.import_module(f"{package}.{module.name}")
