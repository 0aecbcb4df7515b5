"""Searches for packages: by words (``words``), or by patterns that their keys match (``matching``)."""
