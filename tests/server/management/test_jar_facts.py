"""What a jar says of its version is shown where its POM is silent, however it was published."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.maven_bundles import make_jar, make_zip
from tests.support.maven_files import make_pom
from tests.support.memory_server import Stack

pytestmark = pytest.mark.server

MANIFEST = b"Manifest-Version: 1.0\nBuild-Jdk-Spec: 17\nBundle-License: MIT\nBundle-Name: The jar\n\n"
JAR = make_jar({"META-INF/MANIFEST.MF": MANIFEST})


async def shown(stack: Stack, artifact: str) -> Any:
    return await stack.ok("GET", f"/package/main%2Fjava/com.acme:{artifact}/versions/1.0")


async def test_facts_of_a_jar_are_shown_where_the_pom_is_silent(stack: Stack) -> None:
    await stack.add_repository("java", format="maven", config={"type": "Hosted"})
    place, licence = "/repositories/main/java/com/acme", "<licenses><license><name>EPL-2.0</name></license></licenses>"
    for artifact, more in (("silent", ""), ("saying", f"<name>The POM</name>{licence}")):
        for ending, content in (("jar", JAR), ("pom", make_pom("com.acme", artifact, "1.0", more))):
            path = f"{place}/{artifact}/1.0/{artifact}-1.0.{ending}"
            assert (await stack.call("PUT", path, raw=content)).status == 201
    found = await shown(stack, "silent")
    assert (found["license"], found["metadata"]["name"], found["metadata"]["requires_java"]) == ("MIT", "The jar", "17")
    found = await shown(stack, "saying")
    assert (found["license"], found["metadata"]["name"], found["metadata"]["requires_java"]) == (
        "EPL-2.0",
        "The POM",
        "17",
    )
    at = "com/acme/bundled/1.0/bundled-1.0"
    bundle = make_zip({f"{at}.jar": JAR, f"{at}.pom": make_pom("com.acme", "bundled", "1.0")})
    headers = {"Content-Type": "application/zip"}
    reply = await stack.call("POST", "/repositories/main/java/deploy?wait=true", raw=bundle, headers=headers)
    assert reply.status == 201, reply.body
    assert (await shown(stack, "bundled"))["metadata"]["requires_java"] == "17"
