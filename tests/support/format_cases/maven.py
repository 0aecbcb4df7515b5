"""The Maven format."""

from tests.support.maven_files import directory, make_pom

from .case import Case, Send


async def publish(send: Send) -> None:
    place = directory("com.example", "demo", "{}")
    for version in ("1.0", "1.1"):
        for ending, data in ((".pom", make_pom("com.example", "demo", version)), (".jar", b"PK" + version.encode())):
            await send("PUT", f"{place.format(version)}/demo-{version}{ending}", data)
    version = "2.0-SNAPSHOT"
    for build in ("20260101.000000-1", "20260102.000000-2"):
        data = make_pom("com.example", "demo", version)
        await send("PUT", f"{place.format(version)}/demo-2.0-{build}.pom", data)


MAVEN = Case(
    publish=publish,
    name="com.example:demo",
    version="1.1",
    documents=("/com/example/demo/maven-metadata.xml", "/com/example/demo/2.0-SNAPSHOT/maven-metadata.xml"),
    shown=b"<version>1.1<",
    files=("/com/example/demo/1.1/demo-1.1.jar",),
    older="/com/example/demo/1.0/demo-1.0.jar",
    beside=tuple(
        f"/com/example/demo/1.1/demo-1.1{ending}" for ending in (".pom", ".jar.sha1", ".pom.md5", ".jar.sha256")
    ),
)
