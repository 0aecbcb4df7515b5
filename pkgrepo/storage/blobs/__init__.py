"""Stores of immutable bytes, all behind ``IBlobStore``."""
