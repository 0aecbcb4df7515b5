"""Failures that repeat: how they are recognised, and logged once, for every room."""
