"""Signatures of the registry over what it serves."""
