"""Sentences for clients that rooms without a common error class use."""

TOO_MANY_OPEN_FILES = "the server has too many files open; try again in a moment"
