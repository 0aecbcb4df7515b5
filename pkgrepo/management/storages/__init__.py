"""Storages: where bytes are kept."""
