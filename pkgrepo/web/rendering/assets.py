"""The style sheet and the script of the console, under addresses that change with their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.gateway.answers.content import choose_encoding, document_answer
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Document
from pkgrepo.repositories.publish.splicing import render

FOREVER: Final = ((b"Cache-Control", b"public, max-age=31536000, immutable"), (b"Vary", b"Accept-Encoding"))
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Assets:
    """All files of the folder ``static``, in memory."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._documents: dict[str, Document] = {}
        for name, data in _read():
            stem, _, kind = name.rpartition(".")
            addressed = f"{stem}-{hashlib.sha256(data).hexdigest()[:12]}.{kind}"
            self._addresses[name] = f"/ui/static/{addressed}"
            self._documents[addressed] = render(_TYPES[kind], data, 0)

    def address(self, name: str) -> str:
        """The path of a file on the server, by its name in the folder."""
        return self._addresses[name]

    def answer(self, request: Request, addressed: str) -> Answer:
        """The file with this name and hash. :raises NotFound: there is none"""
        document = self._documents.get(addressed)
        if document is None:
            raise NotFound("file", addressed)
        return document_answer(document, choose_encoding(request.header(b"accept-encoding")), FOREVER)


def _read() -> Iterator[tuple[str, bytes]]:
    for each in files("pkgrepo.web").joinpath("static").iterdir():
        if each.name.rpartition(".")[2] in _TYPES:
            yield each.name, each.read_bytes()
