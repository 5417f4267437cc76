"""What a Hugging Face Space is pushed from: chosen, pinned and checked. Not part of the app, and not shipped with it."""
