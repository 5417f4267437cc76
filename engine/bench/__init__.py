"""Benchmarks: `python -m engine.bench NAME ...` prints a table for people and ends with one JSON line."""
