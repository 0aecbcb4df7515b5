"""Packages of every format that have files, as clients publish them, and what clients read of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from attrs import frozen

from tests.support.conda_packages import make_conda
from tests.support.gems import make_gem
from tests.support.http_client import BOUNDARY, form_body
from tests.support.maven_files import directory, make_pom
from tests.support.memory_server import Reply
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.upload_forms import twine

Send = Callable[..., Awaitable[Reply]]


async def publish_npm(send: Send) -> None:
    for version, tag in (("1.0.0", "latest"), ("1.1.0", "latest"), ("2.0.0-rc.1", "next")):
        await send("PUT", "/demo", make_publish("demo", version, tag=tag), kind="application/json")


async def publish_python(send: Send) -> None:
    for version in ("1.0", "1.1"):
        form = twine("demo", version, *make_wheel("demo", version))
        await send("POST", "/", form_body(form), kind=f"multipart/form-data; boundary={BOUNDARY}")


async def publish_gems(send: Send) -> None:
    for version in ("1.0.0", "1.1.0"):
        await send("POST", "/api/v1/gems", make_gem("demo", version), kind="application/octet-stream")


async def publish_conda(send: Send) -> None:
    for version in ("1.0", "1.1"):
        await send("PUT", f"/noarch/demo-{version}-py_0.conda", make_conda("demo", version))


async def publish_java(send: Send) -> None:
    place = directory("com.example", "demo", "{}")
    for version in ("1.0", "1.1"):
        for ending, data in ((".pom", make_pom("com.example", "demo", version)), (".jar", b"PK" + version.encode())):
            await send("PUT", f"{place.format(version)}/demo-{version}{ending}", data)
    version = "2.0-SNAPSHOT"
    for build in ("20260101.000000-1", "20260102.000000-2"):
        data = make_pom("com.example", "demo", version)
        await send("PUT", f"{place.format(version)}/demo-2.0-{build}.pom", data)


@frozen
class Case:
    """How packages of a format are published, and what clients read of them; ``name`` is that of the package."""

    publish: Callable[[Send], Awaitable[None]]
    name: str
    version: str
    documents: tuple[str, ...]
    files: tuple[str, ...]


CASES = {
    "npm": Case(publish_npm, "demo", "1.1.0", ("/demo",), ("/demo/-/demo-1.1.0.tgz",)),
    "python": Case(publish_python, "demo", "1.1", ("/simple/demo/",), ("/demo/1.1/demo-1.1-py3-none-any.whl",)),
    "ruby": Case(publish_gems, "demo", "1.1.0", ("/info/demo",), ("/gems/demo-1.1.0.gem",)),
    "conda": Case(publish_conda, "demo", "1.1", ("/noarch/repodata.json",), ("/noarch/demo-1.1-py_0.conda",)),
    "maven": Case(
        publish_java,
        "com.example:demo",
        "1.1",
        ("/com/example/demo/maven-metadata.xml", "/com/example/demo/2.0-SNAPSHOT/maven-metadata.xml"),
        ("/com/example/demo/1.1/demo-1.1.jar",),
    ),
}
# What differs between two documents of the same content: signatures, revisions and times of the document.
VARIES = re.compile(
    rb'<!--SERIAL \d+-->|"sig":"[^"]*"|"_rev":"[^"]*"|"modified":"[^"]*"|<lastUpdated>\d+</lastUpdated>|"_serial":\d+'
)
