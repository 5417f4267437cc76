"""Fusion methods, one file each; importing the package registers all of them."""

from engine.fusion.base import METHODS
from engine.registry import import_modules

__all__ = ["METHODS"]

import_modules(__name__, list(__path__))
