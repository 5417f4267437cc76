"""How programs reach the engine: the OpenAI-compatible routes, health, metrics and limits. Knows nothing of pages."""
