"""Garbage collection: what nothing needs any more goes, while the server works."""
