"""Garbage collection by the API."""
