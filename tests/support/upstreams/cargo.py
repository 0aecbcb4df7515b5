"""A registry of crates as upstream: a sparse index whose ``config.json`` names another folder for the crates."""

from __future__ import annotations

import json
from typing import Any

from tests.support.crates import index_line, make_crate
from tests.support.upstreams.messages import Answer, etag_of
from tests.support.upstreams.server import ScriptedUpstream


class CargoUpstream(ScriptedUpstream):
    """
    An index of crates added with L{add}; crates are below ``folder``, as its configuration says.

    They are served by ``files``, if another server is given.
    """

    def __init__(self, *, files: ScriptedUpstream | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.files, self.folder = files or self, "/files"
        self.lines: dict[str, list[bytes]] = {}

    def add(self, name: str, version: str = "1.0.0", *, line: dict[str, Any] | None = None, **crate: Any) -> bytes:
        """Publish a crate. Returns its bytes; ``line`` are further fields in the index, others those of the crate."""
        data = make_crate(name, version, **crate)
        body = json.dumps(index_line(name, version, data, **(line or {}))).encode()
        self.lines.setdefault(name.lower(), []).append(body)
        self.files.serve(self.file_path(name, version), data)
        self.serve(path_of(name), self.document(name))
        self.tell()
        return data

    def file_path(self, name: str, version: str = "1.0.0") -> str:
        """The path of a crate."""
        return f"{self.folder}/{name}-{version}.crate"

    def document(self, name: str) -> Answer:
        """The document of a crate."""
        body = b"".join(each + b"\n" for each in self.lines[name.lower()])
        return Answer(body=body, fields={"Content-Type": "text/plain", "ETag": etag_of(body)})

    def tell(self, **more: Any) -> None:
        """Serve the configuration of the index."""
        config = {"dl": f"{self.files.url}{self.folder}/{{crate}}-{{version}}.crate", "api": self.url, **more}
        body = json.dumps(config).encode()
        self.serve(
            "/config.json", Answer(body=body, fields={"Content-Type": "application/json", "ETag": etag_of(body)})
        )


def path_of(name: str) -> str:
    """The path of the document of a crate with a name of four letters or more."""
    key = name.lower()
    return f"/{key[:2]}/{key[2:4]}/{key}"
