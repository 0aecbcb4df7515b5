"""The traces that the configuration asks for: spans of requests, and their way to a collector."""
