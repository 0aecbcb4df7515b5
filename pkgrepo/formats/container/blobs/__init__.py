"""Stored blobs of an image: read and deleted."""
