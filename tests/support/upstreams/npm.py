"""An npm registry as upstream: packuments and tarballs, made of described versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from tests.support.npm_packages import make_dist, make_manifest, make_tarball
from tests.support.upstreams.messages import Answer, Request, etag_of
from tests.support.upstreams.server import UNKNOWN, ScriptedUpstream

PUBLISHED = "2024-01-01T00:00:00.000Z"
ABBREVIATED = "application/vnd.npm.install-v1+json"
# What an abbreviated document has of a version.
SHORT = ("name", "version", "dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "bin",
         "engines", "os", "cpu", "dist", "deprecated", "hasInstallScript")  # fmt: skip


class NpmUpstream(ScriptedUpstream):
    """
    A registry of packages added with L{add}; C{url} is its address.

    Tarballs are at another server if C{files} is given, which is started and stopped by the test.
    """

    def __init__(self, *, files: ScriptedUpstream | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.files = files or self
        self.tarballs: dict[tuple[str, str], bytes] = {}
        self._packuments: dict[str, dict[str, Any]] = {}
        self._bodies: dict[tuple[str, bool], bytes] = {}

    def add(
        self,
        name: str,
        version: str = "1.0.0",
        *,
        published: str = PUBLISHED,
        tag: str = "latest",
        dist: Mapping[str, Any] | None = None,
        pad: int = 0,
        files: Mapping[str, bytes] | None = None,
        **fields: Any,
    ) -> bytes:
        """
        Publish a version, and return its tarball.

        ``dist`` are additional members of its dist, ``pad`` bytes and ``files`` are added to the tarball; ``fields``
        are additional members of the manifest, such as ``dependencies``.
        """
        manifest = make_manifest(name, version, **fields)
        tarball = make_tarball(name, version, manifest=manifest, files=files, pad=pad)
        self.tarballs[name, version] = tarball
        self.files.serve(self.tarball_path(name, version), Answer(body=tarball, fields={"ETag": etag_of(tarball)}))
        packument = self._packuments.setdefault(
            name,
            {"_id": name, "_rev": "1-0", "name": name, "dist-tags": {}, "versions": {}, "time": {"created": published}},
        )
        packument["dist-tags"][tag] = version
        packument["time"] |= {"modified": published, version: published}
        url = {"tarball": self.tarball_url(name, version)}
        packument["versions"][version] = {
            **manifest,
            "_id": f"{name}@{version}",
            "dist": {**make_dist(name, version, tarball), **url, **(dist or {})},
        }
        self.change(name)
        return tarball

    def change(self, name: str, **members: Any) -> dict[str, Any]:
        """Replace members of a packument, and return it. Call it also after changes to what it returns."""
        for form in (True, False):
            self._bodies.pop((name, form), None)
        packument = self._packuments[name]
        packument |= members
        return packument

    def remove(self, name: str) -> None:
        """Unpublish a package. Its tarballs stay."""
        self.change(name)
        del self._packuments[name]

    def path(self, name: str) -> str:
        """The path of a packument, as clients request it."""
        return f"/{name.replace('/', '%2f')}"

    def tarball_path(self, name: str, version: str) -> str:
        """The path of a tarball."""
        return f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"

    def tarball_url(self, name: str, version: str) -> str:
        """The URL of a tarball; the server of files must be listening."""
        return f"{self.files.url}{self.tarball_path(name, version)}"

    def answer(self, request: Request) -> Answer:
        """A document of L{serve}, or a packument under any spelling of its path."""
        found = self.documents.get(request.path)
        name = unquote(request.path[1:])
        if found is not None or name not in self._packuments:
            return found or UNKNOWN
        short = request.accepts(ABBREVIATED)
        body = self._bodies.get((name, short))
        if body is None:
            body = self._bodies[name, short] = json.dumps(self._document(name, short)).encode()
        content_type = ABBREVIATED if short else "application/json"
        fields = {"Content-Type": content_type, "ETag": etag_of(body), "Cache-Control": "public, max-age=300"}
        return Answer(body=body, fields=fields, ranges=False, compress=True)

    def _document(self, name: str, short: bool) -> dict[str, Any]:
        packument = self._packuments[name]
        if not short:
            return packument
        versions = {
            version: {key: manifest[key] for key in SHORT if key in manifest}
            for version, manifest in packument["versions"].items()
        }
        modified = packument["time"]["modified"]
        return {"name": name, "modified": modified, "dist-tags": packument["dist-tags"], "versions": versions}
