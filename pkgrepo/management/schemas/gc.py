"""Garbage collection, and jobs."""
