"""Stored KV of retrieved chunks: computed once, reused in any order and at any position."""
