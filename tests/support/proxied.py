"""Proxy repositories of a running server, with upstreams that a test controls; the same terms for every format."""

from __future__ import annotations

import http.client
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from typing import Any, Generic, Self, TypeVar

from tests.support.http_client import HttpClient, Reply
from tests.support.images import OCI_CONFIG, OCI_IMAGE, OCI_LAYER, Image, describe, digest_of
from tests.support.python_index import JSON, PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled
from tests.support.upstreams.cargo import CargoUpstream
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.go import GoUpstream
from tests.support.upstreams.helm import HelmUpstream
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import Answer, etag_of
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.server import ScriptedUpstream

U = TypeVar("U", bound=ScriptedUpstream)

PRIVATE = '[proxy]\nallow_private = ["127.0.0.1"]\n'  # lets a server use upstreams on this machine


class Proxied(ABC, Generic[U]):
    """
    A proxy repository of an upstream with one package, C{demo}, that has one file of about C{size} bytes.

    C{document} is the path of the package's metadata for clients, C{file} that of its file, C{data} the file's bytes;
    C{upstream_document} and C{upstream_file} are the paths at the upstream. C{auth} are the credentials of
    the route. C{settings} are further members of the repository's configuration, such as C{cache_ttl}.

    With C{of_many} the document is about all packages. Unless a file is C{announced}, nothing tells its digest before
    it comes.
    """

    format: str
    of_many = False
    announced = True
    accept = "*/*"
    document: str
    file: str
    upstream_document: str
    upstream_file: str
    data: bytes

    def __init__(
        self,
        upstream: U,
        server: str,
        name: str,
        *,
        size: int = 200_000,
        auth: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.upstream = upstream
        self.name = name
        self.client = HttpClient(server, (USER, PASSWORD))
        self.fill(size)
        route = {"url": upstream.url, "name": "up", **({"auth": auth} if auth else {})}
        body = {
            "name": name,
            "storage": "main",
            "format": self.format,
            "visibility": "public",
            "config": {"type": "Proxy", "proxy": {"routes": [route]}, **settings},
        }
        made = self.client.post_json("/api/repository", body)
        assert made.status == 201, made

    def at(self, server: str) -> Self:
        """Return it at another address of the server."""
        other = copy(self)
        other.client = HttpClient(server, (USER, PASSWORD))
        return other

    @abstractmethod
    def fill(self, size: int) -> None:
        """Publish the package at the upstream, and set all paths."""

    @abstractmethod
    def is_document(self, reply: Reply) -> bool:
        """Whether a reply is the complete metadata."""

    def pad(self, size: int) -> bytes:
        """So many bytes, which no other repository has, and which do not compress."""
        return random.Random(self.name).randbytes(size)

    @property
    def missing(self) -> str:
        """A path of a package that there is not."""
        return (self.file if self.of_many else self.document).replace("/demo", "/missing")

    @property
    def path(self) -> str:
        """The path of the repository."""
        return f"/repositories/main/{self.name}"

    def get_document(self, **fields: str) -> Reply:
        """Ask for the metadata."""
        return self.client.get(self.document, Accept=self.accept, **fields)

    def get_file(self, **fields: str) -> Reply | None:
        """Ask for the file; None if the connection ended before the answer did."""
        with suppress(http.client.HTTPException, ConnectionError):
            return self.client.get(self.file, **fields)
        return None

    def is_file(self, reply: Reply | None) -> bool:
        """Whether a reply is the complete file."""
        return reply is not None and (reply.status, reply.body) == (200, self.data)

    def await_document(self) -> None:
        """Ask until there is a good answer; the test's time limit ends that."""
        polled(lambda: self.is_document(self.get_document()))

    def await_file(self) -> None:
        """Ask until the file comes; the test's time limit ends that."""
        polled(lambda: self.is_file(self.get_file()))


class ProxiedNpm(Proxied[NpmUpstream]):
    """A tarball and its packument."""

    format = "npm"

    def fill(self, size: int) -> None:
        self.data = self.upstream.add("demo", pad=size)
        self.document, self.file = f"{self.path}/demo", f"{self.path}/demo/-/demo-1.0.0.tgz"
        self.upstream_document = self.upstream.path("demo")
        self.upstream_file = self.upstream.tarball_path("demo", "1.0.0")

    def is_document(self, reply: Reply) -> bool:
        return reply.status == 200 and list(reply.json["versions"]) == ["1.0.0"]


class ProxiedPython(Proxied[PythonUpstream]):
    """A wheel and its simple page."""

    format = "python"
    accept = JSON

    def fill(self, size: int) -> None:
        filename, self.data = self.upstream.add("demo", pad=size)
        self.document, self.file = f"{self.path}/simple/demo/", f"{self.path}/packages/demo/1.0/{filename}"
        self.upstream_document = self.upstream.path("demo")
        self.upstream_file = self.upstream.file_path(filename)

    def is_document(self, reply: Reply) -> bool:
        return reply.status == 200 and len(reply.json["files"]) == 1


class ProxiedImages(Proxied[ContainerUpstream]):
    """A layer and the manifest of its image."""

    format = "docker"
    accept = OCI_IMAGE

    def fill(self, size: int) -> None:
        _, self.data = make_wheel("demo", "1.0", summary=self.name, pad=size)  # bytes that no other image has
        config = b'{"architecture":"amd64","os":"linux"}'
        value = {
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE,
            "config": describe(config, OCI_CONFIG),
            "layers": [describe(self.data, OCI_LAYER)],
        }
        self.image = Image(json.dumps(value).encode(), (config, self.data))
        self.upstream.push("team/demo", self.image, "v1")
        base = f"/v2/main/{self.name}/team/demo"
        self.document, self.file = f"{base}/manifests/v1", f"{base}/blobs/{digest_of(self.data)}"
        self.upstream_document = self.upstream.manifest_path("team/demo", "v1")
        self.upstream_file = self.upstream.blob_path("team/demo", digest_of(self.data))

    def is_document(self, reply: Reply) -> bool:
        return (reply.status, reply.body) == (200, self.image.manifest)


class ProxiedMaven(Proxied[MavenUpstream]):
    """A jar and the metadata of its artifact."""

    format = "maven"

    def fill(self, size: int) -> None:
        _, self.data = make_wheel("demo", "1.0", summary=self.name, pad=size)  # a zip like any jar
        self.upstream_file = self.upstream.deploy("com.example", "demo", "1.0", self.data)
        self.upstream_document = self.upstream.metadata_path("com/example/demo")
        self.document, self.file = f"{self.path}{self.upstream_document}", f"{self.path}{self.upstream_file}"

    def is_document(self, reply: Reply) -> bool:
        return reply.status == 200 and b"<release>1.0</release>" in reply.body


class ProxiedCargo(Proxied[CargoUpstream]):
    """A crate and its lines of the index."""

    format = "cargo"

    def fill(self, size: int) -> None:
        self.data = self.upstream.add("demo", entries=[("demo-1.0.0/pad", self.pad(size))])
        self.document, self.file = f"{self.path}/de/mo/demo", f"{self.path}/api/v1/crates/demo/1.0.0/download"
        self.upstream_document, self.upstream_file = "/de/mo/demo", self.upstream.file_path("demo")

    def is_document(self, reply: Reply) -> bool:
        return (reply.status, reply.body) == (200, self.upstream.document("demo").body)


class ProxiedHelm(Proxied[HelmUpstream]):
    """A chart and the index."""

    format = "helm"
    of_many = True

    def fill(self, size: int) -> None:
        self.data = self.upstream.add("demo", files={"pad": self.pad(size)})
        self.document, self.file = f"{self.path}/index.yaml", f"{self.path}/charts/demo-1.0.0.tgz"
        self.upstream_document, self.upstream_file = "/index.yaml", "/demo-1.0.0.tgz"

    def is_document(self, reply: Reply) -> bool:
        return reply.status == 200 and b"charts/demo-1.0.0.tgz" in reply.body


class ProxiedGo(Proxied[GoUpstream]):
    """The zip of a module and the list of its versions."""

    format = "go"
    announced = False

    def fill(self, size: int) -> None:
        top, versions = "/example.com/!acme/demo/@v", ("v1.0.0", "v1.1.0", "v1.2.0")
        self.upstream.add("example.com/Acme/demo", *versions, files={"pad": self.pad(size)})
        self.upstream_document, self.upstream_file = f"{top}/list", f"{top}/v1.0.0.zip"
        self.document, self.file = f"{self.path}{self.upstream_document}", f"{self.path}{self.upstream_file}"
        files = self.upstream.files or self.upstream
        self.data = bytes(files.documents[self.upstream_file].body)
        for server, place in ((self.upstream, self.upstream_document), (files, self.upstream_file)):
            body = bytes(server.documents[place].body)
            server.serve(place, Answer(body=body, fields={"ETag": etag_of(body)}))

    def is_document(self, reply: Reply) -> bool:
        return (reply.status, reply.body) == (200, b"v1.0.0\nv1.1.0\nv1.2.0\n")


class ProxiedRaw(Proxied[ScriptedUpstream]):
    """A file, of which nothing tells what it should be, and one that is asked for again and again."""

    format = "raw"
    announced = False

    def fill(self, size: int) -> None:
        self.data, text = self.pad(size), b'{"latest": "1.0"}'
        self.upstream_document, self.upstream_file = "/demo/latest.json", "/demo/1.0/demo.bin"
        self.upstream.serve(self.upstream_document, Answer(body=text, fields={"ETag": etag_of(text)}))
        self.upstream.serve(self.upstream_file, Answer(body=self.data, fields={"ETag": etag_of(self.data)}))
        self.document, self.file = f"{self.path}{self.upstream_document}", f"{self.path}{self.upstream_file}"

    def is_document(self, reply: Reply) -> bool:
        return (reply.status, reply.body) == (200, b'{"latest": "1.0"}')


# Those whose files are checked.
KINDS: Mapping[str, tuple[type[ScriptedUpstream], type[Proxied[Any]]]] = {
    "npm": (NpmUpstream, ProxiedNpm),
    "python": (PythonUpstream, ProxiedPython),
    "container": (ContainerUpstream, ProxiedImages),
    "maven": (MavenUpstream, ProxiedMaven),
    "cargo": (CargoUpstream, ProxiedCargo),
    "helm": (HelmUpstream, ProxiedHelm),
    "go": (GoUpstream, ProxiedGo),
}
ALL_KINDS = {**KINDS, "raw": (ScriptedUpstream, ProxiedRaw)}


def answered(mirror: HttpClient, path: str, right: Callable[[Reply], bool]) -> Reply:
    """
    Return the first right answer for a path.

    An answer that is cached ends when it is stored what the upstream says now, a moment after a client has seen that.
    """
    return polled(lambda: reply if right(reply := mirror.get(path)) else None)


def kept(mirror: HttpClient, path: str) -> Reply:
    """Return the answer for a file once it is kept: while it is being stored, its digest is not known."""
    return polled(lambda: reply if "etag" in (reply := mirror.get(path)).headers else None)
