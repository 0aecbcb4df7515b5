"""Mirrors of Java artifacts bring the POMs that Maven reads before it reads anything else of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.formats.maven import needed_poms as poms
from pkgrepo.formats.maven.needed_poms import NeededPoms
from tests.support.maven_files import make_pom
from tests.support.memory_server import running_stacks
from tests.support.upstreams.maven import MavenUpstream

IMPORT = (
    "<dependencyManagement><dependencies><dependency><groupId>org.bom</groupId><artifactId>bom</artifactId>"
    "<version>{}</version><type>pom</type><scope>import</scope></dependency></dependencies></dependencyManagement>"
)


def path(group: str, artifact: str, version: str = "1") -> str:
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.pom"


def pom(artifact: str, *, parent: str = "", more: str = "", group: str = "com.example") -> bytes:
    above = f"<parent><groupId>{group}</groupId><artifactId>{parent}</artifactId><version>1</version></parent>"
    return make_pom(group, artifact, "1", (above if parent else "") + more)


def files(needed: NeededPoms) -> list[str]:
    return sorted(each.file for each in needed.needed())


def test_versions_of_imports_are_properties_also_of_parents() -> None:
    needed = NeededPoms()
    needed.add(path("com.example", "app"), pom("app", parent="middle", more=IMPORT.format("${bom.version}")))
    assert files(needed) == [path("com.example", "middle")]
    needed.add(path("com.example", "middle"), pom("middle", parent="top"))
    assert files(needed) == [path("com.example", "top")]
    properties = "<properties><bom.version>${other}</bom.version><other>4.2</other></properties>"
    needed.add(path("com.example", "top"), pom("top", more=properties))
    assert files(needed) == [path("org.bom", "bom", "4.2")]
    assert files(needed) == [], "each is told once"


def test_poms_without_an_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names one more, or thousands that are not there: that is bounded, in time and in memory."""
    chain, told = NeededPoms(), 0
    found = [path("com.example", "p0")]
    while found:
        chain.add(found[0], pom(f"p{told}", parent=f"p{told + 1}"))
        found, told = files(chain), told + 1
        assert told <= 60
    monkeypatch.setattr(poms, "MOST_POMS", 10)
    many = NeededPoms()
    many.add(path("com.example", "app"), pom("app", more="".join(IMPORT.format(each) for each in range(200))))
    assert len(files(many)) == 10
    assert not files(many)
    monkeypatch.setattr(poms, "MOST_BYTES", 10)
    large = NeededPoms()
    large.add(path("com.example", "app"), pom("app", parent="top"))
    assert not files(large)


def test_what_is_no_coordinate_is_left_out() -> None:
    needed = NeededPoms()
    for number, version in enumerate(("${unknown}", "../../x", "${project.version}", "a b")):
        needed.add(path("com.example", f"a{number}"), pom(f"a{number}", more=IMPORT.format(version)))
    circle = "<properties><v>${v}</v></properties>"
    needed.add(path("com.example", "c"), pom("c", parent="c", more=circle + IMPORT.format("${v}")))
    needed.add(path("com.example", "d"), b"<html>no POM</html>")
    assert files(needed) == [path("org.bom", "bom")]


async def test_parents_and_imports_of_coordinates_are_mirrored(tmp_path: Path) -> None:
    with MavenUpstream() as up:
        up.add(path("com.example", "app"), pom("app", parent="top", more=IMPORT.format("2")))
        up.add(path("com.example", "app").replace(".pom", ".jar"), b"jar")
        up.add(path("com.example", "top"), pom("top"))
        up.add(path("org.bom", "bom", "2"), pom("bom", parent="lost", group="org.bom"))
        async with running_stacks(tmp_path) as make:
            stack: Any = await make(proxy__allow_private=["127.0.0.1"])
            routes = [{"name": "up", "url": up.url, "priority": 0}]
            config = {"type": "Proxy", "proxy": {"routes": routes}}
            await stack.add_repository("java", format="maven", config=config)
            lock = {"name": "list.txt", "text": "com.example:app:1"}
            found = await stack.ok("POST", "/repository/main%2Fjava/mirror?wait=60", {"locks": [lock]})
            assert found["fetched"] == 4
            assert [(each["kind"], each["item"]) for each in found["problems"]] == [("not_found", "lost-1.pom")]
            again = await stack.ok("POST", "/repository/main%2Fjava/mirror?wait=60", {"locks": [lock]})
            assert (again["fetched"], again["present"]) == (0, 4)
