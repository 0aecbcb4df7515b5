"""Answers go out: the value that a handler returns -> head and body or file transfer -> outlet -> socket."""
