"""Queries and write commands for what is counted: downloads, and reads of the caches of proxy repositories."""
