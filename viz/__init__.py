"""Everything the visitor sees: figures (pure) and panels (Gradio)."""
