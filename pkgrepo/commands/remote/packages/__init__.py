"""Packages on a server: list, show, search, yank, delete, tag, explain, and how clients are set up."""
