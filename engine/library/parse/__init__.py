"""One file per kind of document: bytes to plain text with headings and page or row numbers. Runs in a process of its own."""
