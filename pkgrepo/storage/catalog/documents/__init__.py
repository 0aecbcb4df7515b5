"""Queries and write commands for index documents: fragments, lists that only grow, and documents that were replaced."""
