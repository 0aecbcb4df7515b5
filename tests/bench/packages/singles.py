"""Synthetic packages of one file of 9 KB: crates, Go modules, charts and plain files, and how they are published."""

from __future__ import annotations

import json
from collections.abc import Callable

from attrs import frozen

from tests.bench.clients.load import Post
from tests.support.crates import describe, make_crate, pack, publish_body
from tests.support.go_modules import make_module, module_files, path

from .modules import random_bytes

PADDING = 8000  # bytes that do not compress
HOST = "example.com"  # of Go modules


@frozen
class Kind:
    """
    A kind of packages.

    ``post`` publishes a version into the repository whose path is given first. ``document`` lists the versions of a
    package, ``file`` is that of one: paths below the repository.
    """

    name: str
    post: Callable[[str, str, str], Post]
    document: Callable[[str], str]
    file: Callable[[str, str], str]


def _crate(root: str, name: str, version: str) -> Post:
    crate = make_crate(name, version, entries=[(f"{name}-{version}/pad", random_bytes(name, PADDING))])
    return _post("PUT", f"{root}/api/v1/crates/new", publish_body(describe(name, version), crate))


def _module(root: str, name: str, version: str) -> Post:
    module = f"{HOST}/{name}"
    data = make_module(module, f"v{version}", {**module_files(module), "pad": random_bytes(name, PADDING)})
    return _post("PUT", f"{root}{path(module, f'v{version}')}", data)


def _chart(root: str, name: str, version: str) -> Post:
    said = {"apiVersion": "v2", "name": name, "version": version, "description": "A chart made to be weighed"}
    files = {"Chart.yaml": json.dumps(said).encode(), "values.yaml": b"a: 1\n", "pad": random_bytes(name, PADDING)}
    return _post("POST", f"{root}/api/charts", pack([(f"{name}/{each}", data) for each, data in files.items()]))


def _file(root: str, name: str, version: str) -> Post:
    return _post("PUT", f"{root}/{name}/{version}/{name}.bin", random_bytes(f"{name} {version}", PADDING))


def _post(method: str, at: str, body: bytes) -> Post:
    return Post({"Content-Type": "application/octet-stream"}, [body], len(body), method, at)


CARGO = Kind(
    "cargo",
    _crate,
    lambda name: f"/index/{name[:2]}/{name[2:4]}/{name}",
    lambda name, version: f"/api/v1/crates/{name}/{version}/download",
)
GO = Kind(
    "go",
    _module,
    lambda name: f"/{HOST}/{name}/@v/list",
    lambda name, version: f"/{HOST}/{name}/@v/v{version}.zip",
)
HELM = Kind("helm", _chart, lambda _name: "/index.yaml", lambda name, version: f"/charts/{name}-{version}.tgz")
RAW = Kind("raw", _file, lambda name: f"/{name}/", lambda name, version: f"/{name}/{version}/{name}.bin")
KINDS = {each.name: each for each in (CARGO, GO, HELM, RAW)}
