"""Wheels as conda packages: from the bytes of a wheel to those of a ``noarch: python`` package."""
