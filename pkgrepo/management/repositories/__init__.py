"""Repositories and their configuration."""
