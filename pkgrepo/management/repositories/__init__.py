"""Repositories: list, add, change, remove; and their configuration."""
