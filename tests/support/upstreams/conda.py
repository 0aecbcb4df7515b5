"""A conda channel as upstream: repodata of packages added to it, run exports, channeldata, and files."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import zstandard

from tests.support.conda_packages import make_conda, make_index, make_tar_bz2, stem_of
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.server import ScriptedUpstream


class CondaUpstream(ScriptedUpstream):
    """A channel of the packages added with L{add}; ``zst`` tells whether documents are there in that form alone."""

    def __init__(self, *, zst: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.zst = zst
        self.records: dict[str, dict[str, dict[str, Any]]] = {}  # by folder and file
        self.info: dict[str, Any] = {}  # further fields of ``info``

    def add(
        self, name: str = "demo", version: str = "1.0", build: str = "py_0", *, ending: str = ".conda", **more: Any
    ) -> bytes:
        """Publish a package, whose bytes are returned; ``more`` are arguments of C{make_conda}, or of its record."""
        record = more.pop("record", {})
        data = (make_conda if ending == ".conda" else make_tar_bz2)(name, version, build, **more)
        index = make_index(name, version, build, **{key: each for key, each in more.items() if key != "documents"})
        file = stem_of(index) + ending
        digests = {each: hashlib.new(each, data, usedforsecurity=False).hexdigest() for each in ("md5", "sha256")}
        found = {**index, **digests, "size": len(data), **record}
        found = {key: value for key, value in found.items() if value is not None}
        self.records.setdefault(index["subdir"], {})[file] = found
        self.serve(f"/{index['subdir']}/{file}", data)
        self.publish(index["subdir"])
        return data

    def publish(self, subdir: str) -> None:
        """Serve the repodata of a folder as its records are now."""
        records = self.records.get(subdir, {})
        self.serve_document(
            f"/{subdir}/repodata.json",
            {
                "info": {"subdir": subdir, **self.info},
                "packages": {key: each for key, each in records.items() if key.endswith(".tar.bz2")},
                "packages.conda": {key: each for key, each in records.items() if key.endswith(".conda")},
                "removed": [],
                "repodata_version": 1,
            },
        )

    def serve_document(self, path: str, content: Any) -> bytes:
        """Serve a JSON document, whose bytes are returned, in the form that this channel has."""
        data = json.dumps(content).encode()
        body = zstandard.compress(data) if self.zst else data
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        self.serve(f"{path}.zst" if self.zst else path, Answer(body=body, fields={"ETag": etag}))
        return data
