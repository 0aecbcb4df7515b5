"""
Registries behind proxies, in processes of their own: ``python -m tests.bench.upstream KIND PORT MS FOLDER MIB``.

Every answer comes ``MS`` milliseconds late. ``FOLDER`` keeps large files between runs; ``MIB`` is the size of the
image, and that of the large wheel a fifth of it. What a proxy has fetched so far is at ``/-/sent``.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve

from tests.bench.packages.images import Image, make_image
from tests.bench.packages.modules import GROUP, random_bytes
from tests.bench.packages.tarballs import NodePackage, versions
from tests.bench.packages.trees import GEM_TREE, JAVA_TREE, NODE_TREE, PYTHON_TREE, Node
from tests.bench.packages.wheels import Wheel
from tests.support import images as small_images
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import Answer, Fault, Request, etag_of
from tests.support.upstreams.npm import PUBLISHED, NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream
from tests.support.upstreams.server import ScriptedUpstream

SENT = "/-/sent"
LARGE_PACKAGE = "bench-5000"  # 10 MB
HUGE_PACKAGE = "bench-huge"  # 95 MB
WARM_UP = "bench-first"  # fetched before a measurement begins, so that connections and code are ready
LAYERS = 8
LINE = 125e6  # bytes per second of a line of 1 Gbit/s,
IMAGE_CONNECTIONS = 3  # which so many connections share, as docker opens them
MIB = 1 << 20


def large_wheel(mib: int) -> Wheel:
    """The large file of the Python index."""
    return Wheel("bench-large", "1.0.0", mib * MIB)


def file_mib(mib: int) -> int:
    """The size of the large file, in MiB, beside an image of ``mib``."""
    return mib // 5


def large_image(mib: int) -> Image:
    """The image of the container registry."""
    return make_image("bench-image", LAYERS, mib * MIB // LAYERS)


def _npm(port: int, _folder: Path, _mib: int) -> NpmUpstream:
    upstream = NpmUpstream(port=port)
    upstream.add(WARM_UP)
    for node in NODE_TREE:
        needs = dict.fromkeys(node.needs, "^1.0.0")
        upstream.add(node.name, node.newest, dependencies=needs, pad=node.padding)
        packument = upstream.change(node.name)
        described = packument["versions"].pop(node.newest)
        for version in node.versions:
            dist = {**described["dist"], "tarball": upstream.tarball_url(node.name, version)}
            packument["versions"][version] = {**described, "version": version, "dist": dist}
            packument["time"][version] = PUBLISHED
    _add_packument(upstream, LARGE_PACKAGE, 5000, 0)
    return upstream


def _huge(port: int, _folder: Path, _mib: int) -> NpmUpstream:
    upstream = NpmUpstream(port=port)
    upstream.add(WARM_UP)
    _add_packument(upstream, HUGE_PACKAGE, 12_300, 6300)
    return upstream


def _add_packument(upstream: NpmUpstream, name: str, count: int, more: int) -> None:
    """Add a package with so many versions, which have ``more`` bytes more of manifest each; only the first exists."""
    first, *_ = packages = versions(name, count)
    tarball = first.tarball()
    document = {
        "_id": name,
        "name": name,
        "dist-tags": {"latest": packages[-1].version},
        "time": {"created": PUBLISHED, "modified": PUBLISHED} | {each.version: PUBLISHED for each in packages},
        "versions": {each.version: _manifest(upstream, each, more) for each in packages},
    }
    body = json.dumps(document, separators=(",", ":")).encode()
    fields = {"Content-Type": "application/json", "ETag": etag_of(body)}
    upstream.serve(upstream.path(name), Answer(body=body, fields=fields, ranges=False, compress=True))
    upstream.serve(upstream.tarball_path(name, first.version), tarball)


def _manifest(upstream: NpmUpstream, package: NodePackage, more: int) -> Mapping[str, object]:
    # With names that differ, as those of built files do: what only repeats is unpacked ten times as fast.
    digest = hashlib.sha512(package.version.encode()).hexdigest()
    names = (f"part-{number}-{digest[number % 112 :][:16]}" for number in range(more // 75))
    exports = {f"./esm/{name[:8]}": f"./dist/esm/components/{name}.js" for name in names}
    dist = {"shasum": "0" * 40, "tarball": upstream.tarball_url(package.name, package.version)}
    return {**package.manifest, "_id": f"{package.name}@{package.version}", "exports": exports, "dist": dist}


def _python(port: int, folder: Path, mib: int) -> PythonUpstream:
    upstream = PythonUpstream(port=port)
    upstream.add(WARM_UP)
    for node in PYTHON_TREE:
        for version in node.versions:
            newest = version == node.newest
            upstream.add(node.name, version, requires=node.needs, pad=node.padding if newest else 0)
    large = large_wheel(file_mib(mib))
    path = upstream.file_path(large.filename)
    upstream.projects[large.project] = [
        {
            "filename": large.filename,
            "url": upstream.file_url(large.filename),
            "hashes": {"sha256": large.sha256},
            "size": large.size,
            "yanked": False,
            "version": large.version,
        }
    ]
    upstream.serve(path, Answer(body=_mapped(large.ensure(folder)), fields={"ETag": f'"{large.sha256}"'}))
    return upstream


def java_upstream(*, port: int = 0, announces: bool) -> MavenUpstream:
    """The Maven repository; whether the heads of its answers have the SHA-1 of the files."""
    upstream = MavenUpstream(port=port, fields={"X-Checksum-SHA1": "{}"} if announces else None)
    upstream.deploy(GROUP, WARM_UP, "1.0.0")
    for node in JAVA_TREE:
        needs = [coordinates(each) for each in JAVA_TREE if each.name in node.needs]
        upstream.deploy(GROUP, node.name, node.newest, random_bytes(node.name, node.padding), depends=needs)
    return upstream


def coordinates(node: Node) -> str:
    """The artifact of a tree, with its newest version."""
    return f"{GROUP}:{node.name}:{node.newest}"


def _gems(port: int, _folder: Path, _mib: int) -> RubyUpstream:
    upstream = RubyUpstream(port=port)
    upstream.add(WARM_UP)
    for node in GEM_TREE:
        for version in node.versions:
            pad = node.padding if version == node.newest else 0
            upstream.add(node.name, version, dependencies={each: [(">=", "1.0")] for each in node.needs}, pad=pad)
    return upstream


def _images(port: int, folder: Path, mib: int) -> ContainerUpstream:
    upstream = ContainerUpstream(port=port)
    upstream.push(WARM_UP, small_images.make_image(), "v1")
    large = large_image(mib)
    blobs = [_mapped(layer.ensure(folder)) for layer in large.layers]
    upstream.push(large.name, small_images.Image(large.manifest, (large.config, *blobs)), "v1")
    return upstream


def _images_on_a_line(port: int, folder: Path, mib: int) -> ContainerUpstream:
    upstream = _images(port, folder, mib)
    upstream.documents = {
        path: evolve(answer, fault=Fault(rate=LINE / IMAGE_CONNECTIONS)) for path, answer in upstream.documents.items()
    }
    return upstream


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


KINDS: Mapping[str, Callable[[int, Path, int], ScriptedUpstream]] = {
    "npm": _npm,
    "npm-huge": _huge,
    "python": _python,
    "maven": lambda port, _, __: java_upstream(port=port, announces=True),
    "maven-silent": lambda port, _, __: java_upstream(port=port, announces=False),
    "gems": _gems,
    "images": _images,
    "images-line": _images_on_a_line,
}


def main(kind: str, port: str, latency_ms: str, folder: str, mib: str) -> None:
    """Serve until the process is terminated."""
    upstream = KINDS[kind](int(port), Path(folder), int(mib))
    upstream.latency_s = float(latency_ms) / 1e3

    def sent(_: Request) -> Answer:
        counted = [each for each in upstream.exchanges_of(None) if each.request.path != SENT]
        return Answer(body=json.dumps({"requests": len(counted), "bytes": sum(each.sent for each in counted)}).encode())

    upstream.dynamic[SENT] = sent
    upstream.start()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
