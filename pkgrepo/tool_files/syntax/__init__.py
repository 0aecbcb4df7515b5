"""Editors of one syntax each: they put entries into a text, and read a text as nested values, for comparison."""
