"""Samples to measure on: scenarios, generated sets, question sets of the Hugging Face hub, and JSONL files."""

from engine.bench.data.passages import Packing
from engine.bench.data.sample import Sample
from engine.bench.data.sources import LoadedSet, load_samples, load_set, padded, set_names

__all__ = ["LoadedSet", "Packing", "Sample", "load_samples", "load_set", "padded", "set_names"]
