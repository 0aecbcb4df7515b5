"""
Synthetic packages of Node's, and the documents that npm sends to publish them.

Their manifests have the size that those of well-known packages have: a document of 5,000 versions weighs 10 MB.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from tests.bench.clients.load import Post
from tests.support.npm_packages import make_manifest, make_publish, make_tarball

DESCRIBED = {
    "description": "A package made to be weighed, with a description of the length that people give theirs",
    "keywords": ["bench", "weight", "registry", "synthetic"],
    "homepage": "https://example.org/weighed#readme",
    "bugs": {"url": "https://example.org/weighed/issues"},
    "repository": {"type": "git", "url": "git+https://example.org/weighed.git"},
    "license": "MIT",
    "author": {"name": "A. Weigher", "email": "weigher@example.org", "url": "https://example.org"},
    "scripts": {"test": "node --test", "lint": "eslint .", "build": "tsc -p tsconfig.json"},
    "engines": {"node": ">= 18"},
    "dependencies": {f"some-library-{number}": f"^{number}.2.{number * 3}" for number in range(22)},
    "devDependencies": {f"@scope/some-tool-{number}": f"~{number}.4.1" for number in range(14)},
}


@frozen
class NodePackage:
    """One version of a package; ``padding`` is the size of its big file in bytes, which does not compress."""

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
        return make_manifest(self.name, self.version, **DESCRIBED)

    def tarball(self) -> bytes:
        """Its bytes, the same every time."""
        return make_tarball(self.name, self.version, manifest=self.manifest, pad=self.padding)

    def document(self, registry: str) -> bytes:
        """The body by which npm 11 publishes it into the registry at this address."""
        return make_publish(self.name, self.version, tarball=self.tarball(), registry=registry, **DESCRIBED)

    def post(self, registry: str) -> Post:
        """Its publish request."""
        body = self.document(registry)
        return Post({"Content-Type": "application/json"}, [body], len(body), method="PUT")


def versions(name: str, count: int, *, start: int = 0) -> list[NodePackage]:
    """Versions of one package, one after the other as releases come; ``start`` were there before."""
    return [NodePackage(name, f"{1 + n // 100}.{n // 10 % 10}.{n % 10}") for n in range(start, start + count)]
