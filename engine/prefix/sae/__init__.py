"""What SAECache (arXiv 2605.18825) learns online, one part a file, and how it routes requests to queues."""
