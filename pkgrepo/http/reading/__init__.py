"""Requests come in: socket -> channel -> head and framing -> body, in chunks that the handler pulls."""
