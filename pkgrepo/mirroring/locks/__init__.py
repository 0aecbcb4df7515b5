"""Readers of lock files: a text in, the files that it names out. ``reading`` finds the reader of a file."""
