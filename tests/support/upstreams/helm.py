"""A repository of charts as upstream: an index of the charts added to it, and their archives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.charts import make_chart
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.server import ScriptedUpstream


class HelmUpstream(ScriptedUpstream):
    """
    A repository of the charts added with L{add}; ``entries`` are those of its index, by chart.

    Archives are served by ``files``, if another server is given.
    """

    def __init__(self, *, files: ScriptedUpstream | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.files = files
        self.entries: dict[str, list[Any]] = {}
        self.publish()

    def add(
        self, name: str, version: str = "1.0.0", *, files: Mapping[str, str | bytes] | None = None, **entry: Any
    ) -> bytes:
        """Publish a chart, whose bytes are returned; ``entry`` has further fields of its entry, None for none."""
        data, file = make_chart(name, version, files=files or {}), f"{name}-{version}.tgz"
        found = {"name": name, "version": version, "apiVersion": "v2", "created": "2020-01-02T03:04:05Z"}
        found |= {
            "urls": [f"{self.files.url}/{file}" if self.files else file],
            "digest": hashlib.sha256(data).hexdigest(),
            **entry,
        }
        self.entries.setdefault(name, []).insert(0, {key: each for key, each in found.items() if each is not None})
        (self.files or self).serve(f"/{file}", data)
        self.publish()
        return data

    def publish(self, **top: Any) -> None:
        """Serve the index as its entries are now."""
        body = yaml.safe_dump({"apiVersion": "v1", "entries": self.entries, **top}).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        self.serve("/index.yaml", Answer(body=body, fields={"ETag": etag}))
