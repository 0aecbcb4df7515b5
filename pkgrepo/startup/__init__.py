"""The start of a server: checks before it, objects that are created when they are missing, messages on the console."""
