"""The roads by which something of a repository becomes visible, as one request each that a rule has to refuse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote

from attrs import frozen

from tests.support.charts import make_chart
from tests.support.conda_packages import make_conda
from tests.support.crates import describe, make_crate, publish_body
from tests.support.gems import make_gem
from tests.support.go_modules import make_module
from tests.support.go_modules import path as go_path
from tests.support.http_client import BOUNDARY, form_body
from tests.support.images import OCI_IMAGE, digest_of, make_image
from tests.support.matrix.specimens import (
    BAD,
    CARGO,
    CONDA,
    CONTAINER,
    GO,
    GO_NAME,
    GOOD,
    HELM,
    IMAGES,
    JAVA,
    JAVA_FOLDER,
    JSON,
    NPM,
    NPM_NAME,
    PYTHON,
    RAW,
    RUBY,
    Specimen,
)
from tests.support.matrix.world import MatrixWorld
from tests.support.maven_bundles import make_zip
from tests.support.maven_files import make_pom
from tests.support.memory_server import Reply
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.upload_forms import twine

NEW = "1.2.999"  # a version that is not published yet
Ask = Callable[[MatrixWorld, str, str | None], Awaitable[Reply]]  # of the repository and who asks
Prepare = Callable[[MatrixWorld, str], Awaitable[Any]]


@frozen
class Road:
    """
    A road in: ``ask`` sends the request that decides. An administrator has prepared the repository for it.

    An ``empty`` repository does not have the specimen.
    """

    specimen: Specimen
    name: str
    ask: Ask
    prepare: Prepare | None = None
    empty: bool = False

    @property
    def id(self) -> str:
        return f"{self.specimen.format}-{self.name}"


def at(method: str, path: str, body: bytes | None = None, media_type: str = "") -> Ask:
    """A request below the repository."""

    async def ask(world: MatrixWorld, name: str, who: str | None) -> Reply:
        return await world.ask(name, method, path, body, media_type, who=who)

    return ask


def api(method: str, path: str, value: Any = None) -> Ask:
    """A request of the management API; ``{}`` is the repository."""

    async def ask(world: MatrixWorld, name: str, who: str | None) -> Reply:
        return await world.stack.api(method, path.replace("{}", f"main%2F{name}"), value, who=who)

    return ask


def package(specimen: Specimen) -> str:
    return quote(specimen.name, safe="")


def versions_of(specimen: Specimen, version: str = BAD) -> str:
    return f"/package/{{}}/{package(specimen)}/versions/{version}"


async def _ok(world: MatrixWorld, ask: Ask, name: str) -> Reply:
    reply = await ask(world, name, "admin")
    assert reply.status < 300, (reply.status, reply.body)
    return reply


def first(*asks: Ask) -> Prepare:
    """Requests that an administrator sends before."""

    async def prepare(world: MatrixWorld, name: str) -> None:
        for each in asks:
            await _ok(world, each, name)

    return prepare


# Roads of all formats


async def _restore(world: MatrixWorld, name: str, who: str | None) -> Reply:
    found = await world.stack.ok("GET", f"/trash?repository=main/{name}")
    return await world.stack.api("POST", f"/trash/{found['items'][0]['id']}/restore", who=who)


def restore(specimen: Specimen) -> Road:
    return Road(specimen, "restore", _restore, first(api("DELETE", versions_of(specimen))))


def unyank(specimen: Specimen) -> Road:
    yank = api("POST", f"{versions_of(specimen)}/yank", {"reason": "x"})
    return Road(specimen, "api-unyank", api("POST", f"{versions_of(specimen)}/unyank"), first(yank))


def promotion(specimen: Specimen) -> Road:
    """From a repository in which everybody may publish."""

    async def prepare(world: MatrixWorld, name: str) -> None:
        await world.add(specimen, f"{name}-source", {"type": "Hosted"})
        await specimen.publish(world.sender(f"{name}-source"))

    async def ask(world: MatrixWorld, name: str, who: str | None) -> Reply:
        path = versions_of(specimen).replace("{}", f"main%2F{name}-source")
        return await world.stack.api("POST", f"{path}/promote", {"to": f"main/{name}"}, who=who)

    return Road(specimen, "promotion", ask, prepare, empty=True)


def form(specimen: Specimen, filename: str, data: bytes, *fields: tuple[str, str]) -> Road:
    """The upload form of the console."""

    async def ask(world: MatrixWorld, name: str, who: str | None) -> Reply:
        body = form_body([*fields, ("file", filename, data)])
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        return await world.stack.call(
            "POST", f"/api/repository/main%2F{name}/upload", raw=body, headers=headers, who=who
        )

    return Road(specimen, "form", ask)


# npm

_PUT_NPM = at("PUT", "/@acme%2fevil-tool", make_publish(NPM_NAME, NEW), JSON)


async def _document(world: MatrixWorld, name: str) -> Any:
    return (await world.ask(name, "GET", "/@acme%2fevil-tool?write=true", who="admin")).json


async def _undeprecate(world: MatrixWorld, name: str, who: str | None) -> Reply:
    document = await _document(world, name)
    document["versions"][BAD]["deprecated"] = ""
    return await world.ask(name, "PUT", "/@acme%2fevil-tool", json.dumps(document).encode(), JSON, who=who)


async def _deprecate(world: MatrixWorld, name: str) -> None:
    document = await _document(world, name)
    document["versions"][BAD]["deprecated"] = "old"
    reply = await world.ask(name, "PUT", "/@acme%2fevil-tool", json.dumps(document).encode(), JSON, who="admin")
    assert reply.status < 300, reply.body


NPM_ROADS = (
    Road(NPM, "publish", _PUT_NPM),
    Road(NPM, "tag", at("PUT", "/-/package/@acme%2fevil-tool/dist-tags/next", f'"{GOOD}"'.encode(), JSON)),
    Road(NPM, "undeprecate", _undeprecate, _deprecate),
    restore(NPM),
    promotion(NPM),
)

# Python

_WHEEL = make_wheel("evil-tool", NEW)
PYTHON_ROADS = (
    Road(
        PYTHON,
        "publish",
        at("POST", "/", form_body(twine("evil-tool", NEW, *_WHEEL)), f"multipart/form-data; boundary={BOUNDARY}"),
    ),
    Road(
        PYTHON,
        "publish-to-project",
        at(
            "POST",
            "/pypi/evil-tool/upload/",
            form_body(twine("evil-tool", NEW, *_WHEEL)),
            f"multipart/form-data; boundary={BOUNDARY}",
        ),
    ),
    Road(PYTHON, "put", at("PUT", f"/evil-tool/{NEW}/{_WHEEL[0]}", _WHEEL[1], "application/octet-stream")),
    Road(
        PYTHON, "unyank", at("POST", f"/pypi/evil-tool/{BAD}/unyank"), first(at("POST", f"/pypi/evil-tool/{BAD}/yank"))
    ),
    form(PYTHON, *_WHEEL),
    unyank(PYTHON),
    restore(PYTHON),
    promotion(PYTHON),
)

# Ruby

_GEM = make_gem("evil_tool", NEW)
_YANK = f"gem_name=evil_tool&version={BAD}"
RUBY_ROADS = (
    Road(RUBY, "push", at("POST", "/api/v1/gems", _GEM, "application/octet-stream")),
    Road(
        RUBY,
        "unyank",
        at("PUT", f"/api/v1/gems/unyank?{_YANK}"),
        first(at("DELETE", f"/api/v1/gems/yank?{_YANK}")),
    ),
    form(RUBY, f"evil_tool-{NEW}.gem", _GEM),
    unyank(RUBY),
    restore(RUBY),
    promotion(RUBY),
)

# Go

_ZIP = make_module(GO_NAME, f"v{NEW}")
GO_ROADS = (
    Road(GO, "put", at("PUT", go_path(GO_NAME, f"v{NEW}"), _ZIP, "application/zip")),
    Road(GO, "put-unnamed", at("PUT", "/upload", _ZIP, "application/zip")),
    form(GO, "module.zip", _ZIP),
    unyank(GO),
    restore(GO),
    promotion(GO),
)

# conda

_CONDA = make_conda("evil-tool", NEW)
_CONDA_FILE = f"evil-tool-{NEW}-py_0.conda"


async def _commit(world: MatrixWorld, name: str, who: str | None) -> Reply:
    """The first request of anaconda-client's upload that the rules refuse."""
    body = json.dumps({"distribution_type": "conda", "sha256": hashlib.sha256(_CONDA).hexdigest()}).encode()
    return await world.ask(name, "POST", f"/stage/any/evil-tool/{NEW}/noarch/{_CONDA_FILE}", body, JSON, who=who)


CONDA_ROADS = (
    Road(CONDA, "put", at("PUT", f"/noarch/{_CONDA_FILE}", _CONDA, "application/octet-stream")),
    Road(CONDA, "post", at("POST", f"/api/channels/any/upload/{_CONDA_FILE}", _CONDA, "application/octet-stream")),
    Road(
        CONDA,
        "form-of-client",
        at(
            "POST",
            "/api/v1/upload/any",
            form_body([("file", _CONDA_FILE, _CONDA)]),
            f"multipart/form-data; boundary={BOUNDARY}",
        ),
    ),
    Road(CONDA, "stage", _commit),
    form(CONDA, _CONDA_FILE, _CONDA),
    restore(CONDA),
    promotion(CONDA),
)

# Helm

_CHART = make_chart("evil-tool", NEW)
_CHART_FILE = f"evil-tool-{NEW}.tgz"

HELM_ROADS = (
    Road(HELM, "post", at("POST", "/api/charts", _CHART, "application/octet-stream")),
    Road(HELM, "put", at("PUT", f"/charts/{_CHART_FILE}", _CHART, "application/octet-stream")),
    Road(
        HELM,
        "form-of-client",
        at(
            "POST",
            "/api/charts",
            form_body([("chart", _CHART_FILE, _CHART)]),
            f"multipart/form-data; boundary={BOUNDARY}",
        ),
    ),
    form(HELM, _CHART_FILE, _CHART),
    unyank(HELM),
    restore(HELM),
    promotion(HELM),
)

# Java


def put(path: str, data: bytes = b"x") -> Ask:
    return at("PUT", path, data, "application/octet-stream")


_STEM = f"{JAVA_FOLDER}/{NEW}/evil-tool-{NEW}"
_SNAPSHOT = f"{JAVA_FOLDER}/2.0-SNAPSHOT"
_METADATA = b"<metadata><groupId>com.acme</groupId><artifactId>evil-tool</artifactId></metadata>"
_GROUP_METADATA = (
    b"<metadata><plugins><plugin><name>Evil</name><prefix>good</prefix><artifactId>evil-plugin</artifactId></plugin>"
    b"</plugins></metadata>"
)


async def _bundle(world: MatrixWorld, name: str, who: str | None) -> Reply:
    files = {f"{_STEM[1:]}.pom": make_pom("com.acme", "evil-tool", NEW), f"{_STEM[1:]}.jar": b"PK"}
    body = form_body([("bundle", "bundle.zip", make_zip(files))])
    path = "/deploy?name=evil&publishingType=AUTOMATIC&wait=true"
    return await world.ask(name, "POST", path, body, f"multipart/form-data; boundary={BOUNDARY}", who=who)


JAVA_ROADS = (
    Road(JAVA, "bundle", _bundle),
    form(JAVA, f"evil-tool-{NEW}.jar", b"x", ("path", f"{JAVA_FOLDER}/{NEW}/")),
    Road(JAVA, "form-of-pom", form(JAVA, "evil-tool.pom", make_pom("com.acme", "evil-tool", NEW)).ask),
    Road(JAVA, "jar", put(f"{_STEM}.jar")),
    Road(JAVA, "pom", put(f"{_STEM}.pom", make_pom("com.acme", "evil-tool", NEW))),
    Road(JAVA, "checksum", put(f"{_STEM}.jar.sha1", hashlib.sha1(b"x").hexdigest().encode())),
    Road(JAVA, "beside", put(f"{JAVA_FOLDER}/{GOOD}/more.txt")),
    Road(JAVA, "of-another-version", put(f"{JAVA_FOLDER}/{GOOD}/evil-tool-{NEW}.jar")),
    Road(JAVA, "long-build", put(f"{_SNAPSHOT}/evil-tool-2.0-20260101.000000-1234567890.jar")),
    Road(JAVA, "snapshot", put(f"{_SNAPSHOT}/evil-tool-2.0-20260101.000000-1.jar")),
    Road(JAVA, "snapshot-metadata", put(f"{_SNAPSHOT}/maven-metadata.xml", _METADATA)),
    Road(JAVA, "metadata", put(f"{JAVA_FOLDER}/maven-metadata.xml", _METADATA)),
    Road(JAVA, "group-metadata", put("/com/acme/maven-metadata.xml", _GROUP_METADATA)),
    Road(JAVA, "catalog", put("/archetype-catalog.xml", b"<archetype-catalog/>")),
    Road(JAVA, "prefixes", put("/.meta/prefixes.txt", b"/com/evil\n")),
    Road(JAVA, "index", put("/.index/nexus-maven-repository-index.gz")),
    restore(JAVA),
    promotion(JAVA),
)

# Images

_IMAGE = make_image("new")
_BLOB = _IMAGE.blobs[1]


async def _push(world: MatrixWorld, name: str, who: str | None) -> Reply:
    """The manifest of an image whose blobs are there, by a tag."""
    path = f"/v2/evil/tool/manifests/{NEW}"
    return await world.ask(name, "PUT", path, IMAGES[GOOD].manifest, OCI_IMAGE, who=who)


_UPLOADS: dict[str, str] = {}  # the addresses of uploads that an administrator has begun, by repository


async def _begin(world: MatrixWorld, name: str) -> None:
    begun = await world.ask(name, "POST", "/v2/evil/tool/blobs/uploads/", b"", who="admin")
    sent = await world.stack.call("PATCH", begun.headers["location"], raw=bytes(_BLOB))
    _UPLOADS[name] = sent.headers["location"]


async def _finish(world: MatrixWorld, name: str, who: str | None) -> Reply:
    address = _UPLOADS[name]
    sign = "&" if "?" in address else "?"
    return await world.stack.call("PUT", f"{address}{sign}digest={digest_of(_BLOB)}", raw=b"", who=who)


CONTAINER_ROADS = (
    Road(CONTAINER, "finished-upload", _finish, _begin),
    Road(CONTAINER, "tag", _push),
    Road(
        CONTAINER,
        "digest",
        at("PUT", f"/v2/evil/tool/manifests/{_IMAGE.digest}", _IMAGE.manifest, OCI_IMAGE),
        first(
            *(
                at("POST", f"/v2/evil/tool/blobs/uploads/?digest={digest_of(each)}", bytes(each), "application/x")
                for each in _IMAGE.blobs
            )
        ),
    ),
    Road(
        CONTAINER,
        "blob",
        at("POST", f"/v2/evil/tool/blobs/uploads/?digest={digest_of(_BLOB)}", bytes(_BLOB), "application/x"),
    ),
    Road(CONTAINER, "upload", at("POST", "/v2/evil/tool/blobs/uploads/", b"")),
    Road(
        CONTAINER,
        "api-tag",
        api("POST", f"/package/{{}}/{package(CONTAINER)}/tags/{GOOD}", {"digest": IMAGES[BAD].digest}),
    ),
    Road(
        CONTAINER,
        "restore",
        _restore,
        first(at("DELETE", f"/v2/evil/tool/manifests/{BAD}")),
    ),
    promotion(CONTAINER),
)

# Rust

_CRATE = make_crate("evil_tool", NEW)
_BODY = publish_body(describe("evil_tool", NEW), _CRATE)
_PLACE = f"/api/v1/crates/evil_tool/{BAD}"

CARGO_ROADS = (
    Road(CARGO, "publish", at("PUT", "/api/v1/crates/new", _BODY, "application/octet-stream")),
    Road(CARGO, "unyank", at("PUT", f"{_PLACE}/unyank"), first(at("DELETE", f"{_PLACE}/yank"))),
    form(CARGO, f"evil_tool-{NEW}.crate", _CRATE),
    unyank(CARGO),
    restore(CARGO),
    promotion(CARGO),
)

# Files

_FILE = f"evil-tool-{NEW}.bin"
RAW_ROADS = (
    Road(RAW, "put", at("PUT", f"/evil-tool/{NEW}/{_FILE}", b"new", "application/octet-stream")),
    Road(
        RAW,
        "post",
        at(
            "POST",
            f"/evil-tool/{NEW}/",
            form_body([("file", _FILE, b"new")]),
            f"multipart/form-data; boundary={BOUNDARY}",
        ),
    ),
    form(RAW, _FILE, b"new", ("path", f"evil-tool/{NEW}/")),
    restore(RAW),
    promotion(RAW),
)

ROADS: Sequence[Road] = (
    *(*NPM_ROADS, *PYTHON_ROADS, *RUBY_ROADS, *CARGO_ROADS, *CONDA_ROADS),
    *(*HELM_ROADS, *JAVA_ROADS, *GO_ROADS, *RAW_ROADS, *CONTAINER_ROADS),
)
