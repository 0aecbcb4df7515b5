"""An upstream with the packages of an incident, as they were in the minute in which a version that did harm came."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pkgrepo.composition.core import make_formats
from pkgrepo.config import read_config
from pkgrepo.formats.rubygems.legacy import join_rows, list_row
from pkgrepo.proxy.incidents.corpus import get_incident
from pkgrepo.proxy.incidents.shapes import Made, Published
from tests.support.sigstore import FakeSigstore
from tests.support.upstreams.messages import Answer, etag_of
from tests.support.upstreams.server import ScriptedUpstream

FORMATS = make_formats(read_config(environ={}))
AGO = timedelta(minutes=2)
TYPES = {"npm": "application/json", "python": "application/vnd.pypi.simple.v1+json", "ruby": "text/plain"}


class IncidentUpstream(ScriptedUpstream):
    """
    A registry of a format; L{happen} publishes what an incident had.

    Times are moved, so that the version which is asked about is two minutes old. Provenance is signed by ``sigstore``.
    """

    def __init__(self, format: str, sigstore: FakeSigstore) -> None:
        super().__init__()
        self.format = FORMATS[format]
        self.sigstore = sigstore
        self._listed: dict[str, list[str]] = {}

    @property
    def address(self) -> str:
        """What a proxy is given as the URL of its route."""
        return f"{self.url}/simple/" if self.format.name == "python" else self.url

    def happen(self, name: str, package: str, version: str) -> None:
        """Publish the packages of an incident, as in the minute of the publication of a version."""
        incident = get_incident(name)
        (asked,) = [
            each
            for affected in incident.packages
            if affected.name == package
            for each in affected.versions
            if each.version == version
        ]
        moved = datetime.now(UTC) - AGO - asked.at
        for each in incident.packages:
            there = [one for one in each.versions if one.at <= asked.at < (one.removed or asked.at + AGO)]
            if there:
                self._publish(each.name, [msgspec.structs.replace(one, at=one.at + moved) for one in there])

    def _publish(self, name: str, versions: list[Published]) -> None:
        assert self.format.proxied is not None
        drilled = self.format.proxied.drilled
        assert drilled is not None
        made = {each.version: (each, drilled.make(name, each)) for each in versions}
        request = self.format.proxied.document_request(self.format.package_key(name))
        place = urlsplit(next(iter(request.urls(self.address)))).path
        body = drilled.document(name, made, self.url)
        fields = {"Content-Type": TYPES[self.format.name], "ETag": etag_of(body)}
        self.serve(place, Answer(body=body, fields=fields))
        if self.format.name == "ruby":
            self._list(name, body, made)
        for published, file in made.values():
            self.serve(f"/{file.path}", Answer(body=file.content, fields={"ETag": etag_of(file.content)}))
            if published.proof:
                self._attest(name, published, file)

    def _attest(self, name: str, published: Published, file: Made) -> None:
        if self.format.name == "npm":
            document: Mapping[str, Any] = self.sigstore.npm(name, published.version, file.content)
            named = f"{name}@{published.version}".replace("/", "%2f")
            self.serve(f"/-/npm/v1/attestations/{named}", json.dumps(document).encode())
        else:
            document = self.sigstore.python(file.path.rpartition("/")[2], file.content)
            self.serve(f"/{file.path}.provenance", json.dumps(document).encode())

    def _list(self, name: str, info: bytes, made: Mapping[str, Any]) -> None:
        """The lists of all versions: that by which documents of a compact index are current, and the legacy one."""
        self._listed[name] = [*made]
        md5 = hashlib.md5(info).hexdigest()
        line = f"{name} {','.join(made)} {md5}\n"
        known = self.documents.get("/versions")
        body = b"created_at: 2024-01-01T00:00:00Z\n---\n" if known is None else known.body
        self.serve("/versions", Answer(body=body + line.encode(), fields={"Content-Type": "text/plain"}))
        rows = [list_row(each, text, "ruby") for each, texts in self._listed.items() for text in texts]
        self.serve("/specs.4.8.gz", gzip.compress(join_rows(rows), mtime=0))
        for text in made:
            self.serve(f"/quick/Marshal.4.8/{name}-{text}.gemspec.rz", zlib.compress(b"nothing reads it"))
