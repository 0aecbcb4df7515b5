"""
Synthetic packages of Node's, and the documents that npm sends to publish them.

Their manifests have the size that those of well-known packages have: a document of 5,000 versions weighs 10 MB.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from typing import Any

from attrs import frozen

from tests.bench.clients.load import Post

from .filler import filler

PACKED_AT = 499162500  # seconds since the epoch; npm pack gives it to every file
DEPENDENCIES = {f"some-library-{number}": f"^{number}.2.{number * 3}" for number in range(22)}
DEVELOPMENT = {f"@scope/some-tool-{number}": f"~{number}.4.1" for number in range(14)}


@frozen
class NodePackage:
    """One version of a package; C{padding} is the size of its big file in bytes, which does not compress."""

    name: str
    version: str
    padding: int = 8000

    @property
    def filename(self) -> str:
        """The file name of its tarball."""
        return f"{self.name}-{self.version}.tgz"

    @property
    def manifest(self) -> dict[str, Any]:
        """Its package.json."""
        return {
            "name": self.name,
            "version": self.version,
            "description": "A package made to be weighed, with a description of the length that people give theirs",
            "keywords": ["bench", "weight", "registry", "synthetic"],
            "homepage": "https://example.org/weighed#readme",
            "bugs": {"url": "https://example.org/weighed/issues"},
            "repository": {"type": "git", "url": "git+https://example.org/weighed.git"},
            "license": "MIT",
            "author": {"name": "A. Weigher", "email": "weigher@example.org", "url": "https://example.org"},
            "main": "index.js",
            "scripts": {"test": "node --test", "lint": "eslint .", "build": "tsc -p tsconfig.json"},
            "engines": {"node": ">= 18"},
            "dependencies": DEPENDENCIES,
            "devDependencies": DEVELOPMENT,
        }

    def tarball(self) -> bytes:
        """Its bytes, the same every time."""
        target = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1, mtime=PACKED_AT) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
        ):
            for path, content in (
                ("package/package.json", json.dumps(self.manifest, indent=2).encode()),
                ("package/index.js", f"module.exports = {self.version!r};\n".encode()),
                ("package/padding.bin", b"".join(filler(self.padding))),
            ):
                info = tarfile.TarInfo(path)
                info.size, info.mtime = len(content), PACKED_AT
                archive.addfile(info, io.BytesIO(content))
        return target.getvalue()

    def document(self, registry: str) -> bytes:
        """The body by which npm 11 publishes it into the registry at this address."""
        tarball = self.tarball()
        sent = {
            **self.manifest,
            "_id": f"{self.name}@{self.version}",
            "readme": f"# {self.name}\n",
            "readmeFilename": "README.md",
            "_nodeVersion": "24.1.0",
            "_npmVersion": "11.19.1",
            "dist": {
                "integrity": f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}",
                "shasum": hashlib.sha1(tarball).hexdigest(),
                "tarball": f"{registry}/{self.name}/-/{self.filename}",
            },
        }
        attachment = {
            "content_type": "application/octet-stream",
            "data": base64.b64encode(tarball).decode(),
            "length": len(tarball),
        }
        document = {
            "_id": self.name,
            "name": self.name,
            "description": self.manifest["description"],
            "dist-tags": {"latest": self.version},
            "versions": {self.version: sent},
            "access": None,
            "_attachments": {self.filename: attachment},
        }
        return json.dumps(document, separators=(",", ":")).encode()

    def post(self, registry: str) -> Post:
        """Its publish request."""
        body = self.document(registry)
        return Post({"Content-Type": "application/json"}, [body], len(body), method="PUT")


def versions(name: str, count: int, *, start: int = 0) -> list[NodePackage]:
    """Versions of one package, one after the other as releases come; C{start} were there before."""
    return [NodePackage(name, f"{1 + n // 100}.{n // 10 % 10}.{n % 10}") for n in range(start, start + count)]
