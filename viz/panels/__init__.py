"""Gradio builders, one file per tab, and the plain functions their callbacks use."""
