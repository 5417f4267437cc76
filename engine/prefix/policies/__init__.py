"""Eviction policies, one file each; importing the package registers all of them."""

from engine.prefix.policy import POLICIES
from engine.registry import import_modules

__all__ = ["POLICIES"]

import_modules(__name__, list(__path__))
