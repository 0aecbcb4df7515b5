"""Packuments out: fragments in the catalog -> document, full or abbreviated."""
