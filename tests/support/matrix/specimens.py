"""One package of each format, in a version that rules are made against and in one that they leave."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import zstandard
from attrs import Factory, evolve, field, frozen

from tests.support.charts import make_chart
from tests.support.conda_packages import make_conda
from tests.support.crates import describe, make_crate, publish_body
from tests.support.gems import make_gem
from tests.support.go_modules import go_mod, make_module
from tests.support.go_modules import path as go_path
from tests.support.http_client import BOUNDARY, form_body
from tests.support.images import OCI_IMAGE, Image, digest_of, make_artifact, make_image, make_layer_tar
from tests.support.matrix.clock import CLOCK
from tests.support.maven_files import make_pom
from tests.support.npm_packages import make_bundle, make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.sigstore import FakeSigstore
from tests.support.tarballs import make_tar_gz
from tests.support.upload_forms import attestations, twine

GOOD, BAD = "1.0.333", "1.1.666"  # versions whose texts are in documents only where they mean these versions
JSON = "application/json"
LICENCES = {GOOD: "MIT", BAD: "GPL-3.0-only"}

Send = Callable[..., Awaitable[Any]]  # of method, path, bytes and media type


@frozen
class Item:
    """
    A file of a version as rules judge it, and where clients get it.

    ``marker`` is in a document if and only if that names the file. ``paths`` give its bytes or are derived of it, and
    are refused with it; those in ``silent`` are refused without its name or its reason. ``contents`` are the bytes that
    a digest may name.
    """

    version: str
    marker: bytes
    paths: tuple[str, ...]
    contents: tuple[bytes, ...]
    scripts: bool | None = None
    licence: str = ""
    beside: tuple[str, ...] = ()
    pth: bool = False

    def digests(self, algorithm: str = "sha256") -> tuple[str, ...]:
        """The digests (hex) of its bytes."""
        return tuple(hashlib.new(algorithm, each).hexdigest() for each in self.contents)


@frozen
class Specimen:
    """
    A package, as it is published and read.

    ``name`` is the one in rules, and ``spelling`` another way in which a rule may write it. ``documents`` name the
    items, and ``abouts`` those of one version, with ``{}`` in the place of its text or ``{digest}`` in that of its
    first digest. ``newest`` are documents that name only the highest version that is left, those ``of_upstream`` in a
    proxy only that of its upstream. ``upstream`` is behind the address of a repository that is an upstream.
    ``only_hosted`` are documents of what is stored, which proxies do not have, and those ``withheld`` do not exist
    where a rule is about the package. ``held`` is one that lists to ``agent`` what rules hold. What rules of the kinds
    in ``read_late`` ask for is read when a file is asked for, also of what is hosted. Only repositories of the
    ``kinds`` have the specimen. Rules may ask for what the files have inside if they are ``looked_into``.
    """

    format: str
    name: str
    spelling: str
    items: tuple[Item, ...]
    publish: Callable[[Send], Awaitable[None]]
    documents: tuple[str, ...]
    newest: tuple[str, ...] = ()
    abouts: tuple[str, ...] = ()
    ecosystem: str = ""
    upstream: str = "/"
    only_hosted: tuple[str, ...] = ()
    of_upstream: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    held: str = ""
    agent: str = ""
    kinds: tuple[str, ...] = ("hosted", "cold", "listed", "warm", "virtual", "around")
    labels: bool = False
    looked_into: bool = False
    read_late: tuple[str, ...] = ()
    id: str = field(default=Factory(lambda self: self.format, takes_self=True))

    @property
    def bad(self) -> tuple[Item, ...]:
        """Those of the version that rules are made against."""
        return tuple(each for each in self.items if each.version == BAD)


def plain(body: bytes) -> bytes:
    """A document without its compression, and without the field that tells clients of npm what is withheld."""
    text = _unpacked(body)
    if b'"policyRestrictions"' not in text:
        return text
    document = json.loads(text)
    withheld = document.pop("policyRestrictions")
    assert withheld["message"]
    assert document["versions"].keys().isdisjoint(withheld["versions"])
    assert all(each == {"name": NPM_NAME, "version": text} for text, each in withheld["versions"].items())
    return json.dumps(document, ensure_ascii=False).encode()


def _unpacked(body: bytes) -> bytes:
    for begin, unpack in (
        (b"\x1f\x8b", gzip.decompress),
        (b"BZh", bz2.decompress),
        (b"\x28\xb5\x2f\xfd", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
        (b"\x78", zlib.decompress),
    ):
        if body.startswith(begin):
            return unpack(body)
    return body


SHARD = "shard of "  # begins a document that is found through an index


# The repository of all specimens that name one; the host has a tag of the good version alone.
SOURCE_HOST = "git.example.com"
SOURCE = f"https://{SOURCE_HOST}/acme/evil-tool"
SOURCE_ARCHIVE = f"acme/evil-tool/v{GOOD}.tar.gz", make_tar_gz({"evil-tool/none.of.them": b"x"})

# npm

NPM_NAME = "@acme/evil-tool"
NPM_FILES = {
    version: make_tarball(
        NPM_NAME,
        version,
        manifest=make_manifest(
            NPM_NAME,
            version,
            license=LICENCES[version],
            repository=SOURCE,
            **({"scripts": {"install": "x"}} if version == BAD else {}),
        ),
    )
    for version in (GOOD, BAD)
}


async def _publish_npm(send: Send) -> None:
    for version, data in NPM_FILES.items():
        more: dict[str, Any] = {"scripts": {"install": "x"}, "hasInstallScript": True} if version == BAD else {}
        bundle = make_bundle(NPM_NAME, version, data)
        body = make_publish(NPM_NAME, version, tarball=data, bundle=bundle, license=LICENCES[version], **more)
        await send("PUT", "/@acme%2fevil-tool", body, JSON)


NPM = Specimen(
    format="npm",
    looked_into=True,
    name=NPM_NAME,
    spelling="@Acme/Evil-Tool",
    items=tuple(
        Item(
            version,
            version.encode(),
            (
                f"/@acme/evil-tool/-/evil-tool-{version}.tgz",
                f"/@acme%2fevil-tool/-/evil-tool-{version}.tgz",
                f"/%40acme%2fevil-tool/-/@acme/evil-tool-{version}.tgz",
                f"/@acme%2fevil-tool/{version}",
                f"/-/npm/v1/attestations/@acme%2fevil-tool@{version}",
            ),
            (data,),
            version == BAD,
            LICENCES[version],
        )
        for version, data in NPM_FILES.items()
    ),
    publish=_publish_npm,
    documents=("/@acme%2fevil-tool", "/@acme%2fevil-tool?", "/@acme%2fevil-tool?write=true"),
    newest=("/-/package/@acme%2fevil-tool/dist-tags", "/-/v1/search?text=evil-tool", "/-/all"),
    only_hosted=("/-/all",),
    ecosystem="npm",
)

# Python

STARTED = {GOOD: {}, BAD: {"evil_tool.pth": b"import evil_tool\n"}}  # with Python
PYTHON_FIELDS = {
    version: [("License", licence), ("Project-URL", f"Source, {SOURCE}")] for version, licence in LICENCES.items()
}
WHEELS = {
    version: make_wheel("evil-tool", version, fields=PYTHON_FIELDS[version], extra_files=STARTED[version])
    for version in LICENCES
}
SDISTS = {version: make_sdist("evil-tool", version, fields=PYTHON_FIELDS[version]) for version in LICENCES}


async def _publish_python(send: Send) -> None:
    for version in LICENCES:
        for name, data in (WHEELS[version], SDISTS[version]):
            fields = [*twine("Evil_Tool", version, name, data)]
            fields.insert(1, ("attestations", attestations(name, data)))
            await send("POST", "/", form_body(fields), f"multipart/form-data; boundary={BOUNDARY}")


def _python_paths(version: str, name: str) -> tuple[str, ...]:
    found = (
        f"/packages/evil-tool/{version}/{name}",
        f"/evil-tool/{version}/{name}",
        f"/Evil_Tool/{version}/{name}",
        f"/packages/{name}",
        f"/simple/evil-tool/{name}",
        f"/+f/abc/def0123456789/{name}",
        f"/integrity/evil-tool/{version}/{name}/provenance",
        f"/pypi/evil-tool/{version}/?filename={name}",
    )
    return (f"/evil-tool/{version}/{name}.metadata", *found) if name.endswith(".whl") else found


PYTHON = Specimen(
    format="python",
    looked_into=True,
    name="evil-tool",
    spelling="Evil.TOOL",
    items=tuple(
        Item(
            version,
            name.encode(),
            _python_paths(version, name),
            (data,),
            name.endswith(".gz"),
            LICENCES[version],
            pth=version == BAD and name.endswith(".whl"),
        )
        for files in (WHEELS, SDISTS)
        for version, (name, data) in files.items()
    ),
    publish=_publish_python,
    documents=("/simple/evil-tool/", "/simple/evil-tool/?format=application/vnd.pypi.simple.v1%2Bjson"),
    newest=("/pypi/evil-tool/json", "/pypi-data/evil-tool/json"),
    abouts=("/pypi/evil-tool/{}/json",),
    held="/simple/evil-tool/?format=application/vnd.pypi.simple.v1%2Bjson",
    agent="uv/0.13.8",
    ecosystem="PyPI",
    upstream="/simple/",
)

# The conda packages that are made of wheels, judged as these

CHANNEL = evolve(
    PYTHON,
    id="wheels",
    items=tuple(
        Item(
            version,
            f"evil-tool-{version}".encode(),
            (f"/conda/noarch/evil-tool-{version}-py_0.conda",),
            (data,),
            False,
            LICENCES[version],
            pth=version == BAD,
        )
        for version, (_, data) in WHEELS.items()
    ),
    documents=("/conda/noarch/repodata.json", "/conda/noarch/repodata.json.zst", f"{SHARD}/conda/noarch"),
    abouts=(),
    held="",
    newest=("/conda/noarch/current_repodata.json",),
    kinds=("hosted", "around"),
    read_late=(
        *("contents", "pth", "differs", "licence_differs", "unexplained", "licences_inside"),
        *("no_provenance", "trust_fell", "unknown_digest"),
    ),
)

# Ruby

BUILT = {GOOD: " []\n", BAD: "\n- ext/extconf.rb\n"}
GEMS = {
    version: make_gem(
        "evil_tool",
        version,
        extra=f"licenses:\n- {LICENCES[version]}\nextensions:{BUILT[version]}",
    )
    for version in LICENCES
}


SIGSTORE = FakeSigstore()  # which the servers trust
FORM = f"multipart/form-data; boundary={BOUNDARY}"


async def _publish_gems(send: Send) -> None:
    for version, data in GEMS.items():
        attested = [("attestations", SIGSTORE.gem(data).decode())] if version == GOOD else []
        await send("POST", "/api/v1/gems", form_body([("gem", "evil.gem", data), *attested]), FORM)
        CLOCK.go_on()


RUBY = Specimen(
    format="ruby",
    looked_into=True,
    name="evil_tool",
    spelling="EVIL_TOOL",
    items=tuple(
        Item(
            version,
            version.encode(),
            (
                f"/gems/evil_tool-{version}.gem",
                f"/quick/Marshal.4.8/evil_tool-{version}.gemspec.rz",
                f"/api/v1/attestations/evil_tool-{version}.json",
            ),
            (data,),
            version == BAD,
            LICENCES[version],
        )
        for version, data in GEMS.items()
    ),
    publish=_publish_gems,
    documents=(
        *("/info/evil_tool", "/versions", "/specs.4.8.gz", "/api/v1/versions/evil_tool.json"),
        "/api/v1/dependencies.json?gems=evil_tool",
    ),
    newest=(
        "/latest_specs.4.8.gz",
        "/api/v1/gems/evil_tool.json",
        "/api/v1/versions/evil_tool/latest.json",
        "/api/v1/search.json?query=evil",
    ),
    abouts=("/api/v2/rubygems/evil_tool/versions/{}.json",),
    withheld=("/api/v1/dependencies.json?gems=evil_tool",),
    only_hosted=("/api/v1/search.json?query=evil", "/api/v1/dependencies.json?gems=evil_tool"),
    ecosystem="RubyGems",
)

# Rust

CRATES = {
    version: make_crate(
        "evil_tool", version, license=LICENCES[version], **({"build": "build.rs"} if version == BAD else {})
    )
    for version in LICENCES
}


async def _publish_crates(send: Send) -> None:
    for version, data in CRATES.items():
        body = publish_body(describe("evil_tool", version), data)
        await send("PUT", "/api/v1/crates/new", body, "application/octet-stream")


CARGO = Specimen(
    format="cargo",
    name="evil_tool",
    spelling="EVIL_TOOL",
    items=tuple(
        Item(
            version,
            version.encode(),
            (
                f"/evil_tool/{version}/evil_tool-{version}.crate",
                f"/api/v1/crates/evil_tool/{version}/download",
                f"/api/v1/crates/Evil_Tool/{version}/download",
            ),
            (data,),
            version == BAD,
            LICENCES[version],
        )
        for version, data in CRATES.items()
    ),
    publish=_publish_crates,
    documents=("/index/ev/il/evil_tool", "/ev/il/evil_tool"),
    newest=("/api/v1/crates?q=evil",),
    only_hosted=("/api/v1/crates?q=evil",),
    ecosystem="crates.io",
    upstream="/index/",
)

# conda

CONDA_FILES = {GOOD: (), BAD: (("lib/python3.12/site-packages/evil.pth", b"import evil\n"),)}
CONDAS = {
    version: make_conda("evil-tool", version, license=LICENCES[version], payload=[*CONDA_FILES[version]])
    for version in LICENCES
}


async def _publish_conda(send: Send) -> None:
    for version, data in CONDAS.items():
        await send("PUT", f"/noarch/evil-tool-{version}-py_0.conda", data, "application/octet-stream")


CONDA = Specimen(
    format="conda",
    name="evil-tool",
    spelling="Evil-TOOL",
    items=tuple(
        Item(
            version,
            f"evil-tool-{version}".encode(),
            (f"/noarch/evil-tool-{version}-py_0.conda",),
            (data,),
            None,
            LICENCES[version],
            pth=version == BAD,
        )
        for version, data in CONDAS.items()
    ),
    publish=_publish_conda,
    documents=(
        *("/noarch/repodata.json", "/noarch/repodata.json.zst", "/noarch/repodata.json.bz2"),
        f"{SHARD}/noarch",
    ),
    newest=("/noarch/current_repodata.json",),
    read_late=("pth", "differs", "licence_differs", "licences_inside", "unknown_digest"),
    of_upstream=("/noarch/current_repodata.json",),
)

# Helm

CHARTS = {
    version: make_chart(
        "evil-tool",
        version,
        files={"values.yaml": f"archive: evil-tool-{version}.tgz\n"},
        annotations={"artifacthub.io/license": LICENCES[version]},
    )
    for version in LICENCES
}


async def _publish_charts(send: Send) -> None:
    for data in CHARTS.values():
        await send("POST", "/api/charts", data, "application/octet-stream")


HELM = Specimen(
    format="helm",
    name="evil-tool",
    spelling="evil-tool",
    items=tuple(
        Item(
            version,
            f"evil-tool-{version}.tgz".encode(),
            (f"/charts/evil-tool-{version}.tgz", f"/evil-tool-{version}.tgz"),
            (data,),
            None,
            LICENCES[version],
        )
        for version, data in CHARTS.items()
    ),
    publish=_publish_charts,
    documents=("/index.yaml", "/api/charts", "/api/charts?limit=9", "/api/charts/evil-tool"),
    abouts=tuple(f"/api/charts/evil-tool/{{}}{each}" for each in ("", "/values")),
    read_late=("unknown_digest",),
)

# Java

POMS = {
    version: make_pom(
        "com.acme",
        "evil-tool",
        version,
        f"<licenses><license><name>{LICENCES[version]}</name></license></licenses>",
    )
    for version in LICENCES
}
JARS = {version: b"PK a jar of " + version.encode() for version in LICENCES}
JAVA_FOLDER = "/com/acme/evil-tool"


async def _publish_java(send: Send) -> None:
    for version in LICENCES:
        stem = f"{JAVA_FOLDER}/{version}/evil-tool-{version}"
        for path, data in ((f"{stem}.pom", POMS[version]), (f"{stem}.jar", JARS[version])):
            await send("PUT", path, data, "application/octet-stream")
        await send("PUT", f"{JAVA_FOLDER}/{version}/notes.txt", f"of {version}".encode(), "text/plain")


def _java_paths(version: str) -> tuple[str, ...]:
    stem = f"{JAVA_FOLDER}/{version}/evil-tool-{version}"
    endings = ("jar", "pom", "jar.sha1", "jar.md5", "jar.sha256", "jar.sha512", "pom.sha1")
    return tuple(f"{stem}.{each}" for each in endings)


JAVA = Specimen(
    format="maven",
    name="com.acme:evil-tool",
    spelling="COM.acme:Evil-Tool",
    items=tuple(
        Item(
            version,
            version.encode(),
            _java_paths(version),
            (JARS[version], POMS[version]),
            None,
            LICENCES[version],
            (f"{JAVA_FOLDER}/{version}/notes.txt",),
        )
        for version in LICENCES
    ),
    publish=_publish_java,
    documents=(f"{JAVA_FOLDER}/maven-metadata.xml", f"{JAVA_FOLDER}/"),
    abouts=(f"{JAVA_FOLDER}/{{}}/", f"{JAVA_FOLDER}/{{}}/maven-metadata.xml"),
    newest=("/solrsearch/select?q=evil-tool&wt=json",),
    only_hosted=("/solrsearch/select?q=evil-tool&wt=json", f"{JAVA_FOLDER}/"),
    ecosystem="Maven",
)

# Files

RAW_FILES = {version: b"bytes of " + version.encode() for version in LICENCES}


async def _publish_files(send: Send) -> None:
    for version, data in RAW_FILES.items():
        await send("PUT", f"/evil-tool/{version}/evil-tool-{version}.bin", data, "application/octet-stream")


RAW = Specimen(
    format="raw",
    name="evil-tool",
    spelling="EVIL-Tool",
    items=tuple(
        Item(
            version,
            version.encode(),
            tuple(f"/evil-tool/{version}/evil-tool-{version}.bin{each}" for each in ("", ".sha256", ".sha512", ".md5")),
            (data,),
        )
        for version, data in RAW_FILES.items()
    ),
    publish=_publish_files,
    documents=("/evil-tool/",),
    abouts=("/evil-tool/{}/",),
)

# Go

GO_NAME = "example.com/Evil-tool"
GO_MODS = {version: go_mod(GO_NAME, more=f"// {version}") for version in LICENCES}
GO_ZIPS = {
    version: make_module(GO_NAME, f"v{version}", {"go.mod": GO_MODS[version]}, licence=LICENCES[version])
    for version in LICENCES
}


async def _publish_go(send: Send) -> None:
    for version, data in GO_ZIPS.items():
        await send("PUT", go_path(GO_NAME, f"v{version}"), data, "application/zip")


GO = Specimen(
    format="go",
    name=GO_NAME,
    spelling="EXAMPLE.com/evil-TOOL",
    items=tuple(
        Item(
            version,
            f"v{version}".encode(),
            (
                go_path(GO_NAME, f"v{version}"),
                f"/example.com/%21evil-tool/@v/v{version}.zip",
                go_path(GO_NAME, f"v{version}", "mod"),
            ),
            (data, GO_MODS[version]),
            None,
            LICENCES[version],
            (go_path(GO_NAME, f"v{version}", "info"),),
        )
        for version, data in GO_ZIPS.items()
    ),
    publish=_publish_go,
    documents=("/example.com/!evil-tool/@v/list",),
    newest=("/example.com/!evil-tool/@latest",),
    ecosystem="Go",
)

# Images

IMAGES: Mapping[str, Image] = {
    GOOD: make_image(GOOD, settings={"Labels": {"stage": "fine"}, "User": "app"}),
    BAD: make_image(
        BAD,
        settings={"Labels": {"stage": "evil"}},
        more_layers=[gzip.compress(make_layer_tar([("bin/su", 0o4755)]), mtime=0)],
    ),
}

SIGNATURES = {
    version: make_artifact(image, "application/vnd.example.signature", annotations={"of": version})
    for version, image in IMAGES.items()
}


async def _publish_images(send: Send) -> None:
    for version, image in IMAGES.items():
        for blob in image.blobs:
            path = f"/v2/evil/tool/blobs/uploads/?digest={digest_of(blob)}"
            await send("POST", path, bytes(blob), "application/octet-stream")
        await send("PUT", f"/v2/evil/tool/manifests/{version}", image.manifest, OCI_IMAGE)
        signature = SIGNATURES[version]
        for blob in signature.blobs:
            path = f"/v2/evil/tool/blobs/uploads/?digest={digest_of(blob)}"
            await send("POST", path, bytes(blob), "application/octet-stream")
        await send("PUT", f"/v2/evil/tool/manifests/{signature.digest}", signature.manifest, OCI_IMAGE)


CONTAINER = Specimen(
    format="docker",
    name="evil/tool",
    spelling="Evil/Tool",
    items=tuple(
        Item(
            version,
            version.encode(),
            (
                f"/v2/evil/tool/manifests/{version}",
                f"/v2/evil/tool/manifests/{image.digest}",
                *(f"/v2/evil/tool/blobs/{digest_of(each)}" for each in image.blobs),
            ),
            (image.manifest,),
        )
        for version, image in IMAGES.items()
    ),
    publish=_publish_images,
    documents=("/v2/evil/tool/tags/list",),
    abouts=("/v2/evil/tool/referrers/sha256:{digest}",),
    labels=True,
    read_late=("label", "root_user", "setuid"),
)

SPECIMENS: Sequence[Specimen] = (NPM, PYTHON, RUBY, CARGO, CONDA, HELM, JAVA, GO, RAW, CONTAINER)
READ: Sequence[Specimen] = (*SPECIMENS, CHANNEL)
