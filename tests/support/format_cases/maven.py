"""The Maven format."""

from __future__ import annotations

from tests.support.maven_files import make_pom

from .case import OCTETS, Case, Send, sha256

STEM = "/com/example/{name}/{version}/{name}-{version}"


async def put(send: Send, name: str, version: str) -> None:
    stem = STEM.format(name=name, version=version)
    for ending, data in ((".pom", make_pom("com.example", name, version)), (".jar", b"PK" + version.encode())):
        await send("PUT", f"{stem}{ending}", data, kind=OCTETS)


async def put_snapshot(send: Send) -> None:
    for build in ("20260101.000000-1", "20260102.000000-2"):
        data = make_pom("com.example", "demo", "2.0-SNAPSHOT")
        await send("PUT", f"/com/example/demo/2.0-SNAPSHOT/demo-2.0-{build}.pom", data, kind=OCTETS)


def lock(name: str, version: str, data: bytes) -> tuple[str, str]:
    return "paths.txt", f"{sha256(data)}  {STEM.format(name=name, version=version)[1:]}.jar\n"


MAVEN = Case(
    format="maven",
    key="com.example:{name}",
    binding="com.example",
    versions=("1.0", "1.1"),
    put=put,
    more=put_snapshot,
    newest="2.0-SNAPSHOT",
    document="/com/example/{name}/maven-metadata.xml",
    listed="<version>{version}<",
    more_documents=("/com/example/demo/2.0-SNAPSHOT/maven-metadata.xml",),
    file=f"{STEM}.jar",
    beside=tuple(
        f"/com/example/demo/1.1/demo-1.1{ending}" for ending in (".pom", ".jar.sha1", ".pom.md5", ".jar.sha256")
    ),
    sent=lambda name, version: (
        f"{name}-{version}.jar",
        b"PK" + version.encode(),
        {"path": f"com/example/{name}/{version}/"},
    ),
    lock=lock,
)
