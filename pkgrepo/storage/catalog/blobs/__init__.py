"""Blobs of each storage, references to them, garbage collection, and upload sessions: queries and write commands."""
