"""Conversations: earlier turns from the prefix cache, retrieved chunks fused behind them. `types` needs no torch."""
