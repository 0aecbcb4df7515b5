"""Snippets of text that set up a client, or install a package with it."""

from __future__ import annotations

from shlex import quote
from typing import Final

TOKEN: Final = "<TOKEN>"  # noqa: S105 - a placeholder

Snippet = dict[str, str]


def snippet(client: str, title: str, file: str, language: str, text: str) -> Snippet:
    """Text for a file, or a command of the shell without a file name."""
    return {"client": client, "title": title, "file": file, "language": language, "text": text}


def command(client: str, *words: str) -> Snippet:
    """A command of the shell; each word is quoted if it needs that."""
    return snippet(client, client, "", "sh", " ".join(map(quote, words)) + "\n")
