"""Documents to ask about: libraries, parsing, chunking and search, in one SQLite file. Knows nothing of models."""
