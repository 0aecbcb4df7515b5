"""How failures that repeat are recognised and logged once, for every room."""
