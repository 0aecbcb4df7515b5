"""Formats with free paths: files at their public paths, documents of directories beside them, and sidecars apart."""
