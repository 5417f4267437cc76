"""Workloads: readers of recorded logs and seeded generators of traffic."""
