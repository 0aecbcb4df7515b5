"""What lists of gems, conda packages, Maven artifacts and images name; and which reader a file gets."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.locks import read_explicit
from pkgrepo.formats.container.locks import read_images
from pkgrepo.formats.maven.locks import read_maven
from pkgrepo.formats.rubygems.locks import read_gemfile
from pkgrepo.gateway.mirrored.choosing import Chosen
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, differs
from pkgrepo.gateway.mirrored.reading import find_formats, read_lock
from tests.support.lock_files import FORMATS

HEX = "a" * 64


def files(lock: Lock) -> list[str]:
    return [each.file for each in lock.wanted]


def test_gemfile() -> None:
    lock = read_gemfile(
        "GIT\n  remote: https://h.example/g.git\n  specs:\n    g (1.0)\n\n"
        "PATH\n  remote: .\n  specs:\n    own (0.1)\n\n"
        "GEM\n  remote: https://g.example/\n  specs:\n    a (1.0)\n      b (>= 1)\n    b (2.0-java)\n\n"
        "PLATFORMS\n  ruby\n\n"
        f"DEPENDENCIES\n  a\n\nCHECKSUMS\n  a (1.0) sha256={HEX}\n\nBUNDLED WITH\n   2.5.0\n"
    )
    assert [(each.name, each.version, bool(each.digests)) for each in lock.wanted] == [
        ("a", "1.0", True),
        ("b", "2.0-java", False),
    ]
    assert [item for item, _ in lock.left_out] == ["g 1.0"]


def test_explicit_list_of_conda() -> None:
    lock = read_explicit(
        f"# platform: linux-64\n@EXPLICIT\nhttps://c.example/x/linux-64/a-1.0-h0_0.conda#{'b' * 32}\n"
        f"https://c.example/x/noarch/b-c-2.0-py_0.tar.bz2#sha256:{HEX}\n"
    )
    assert files(lock) == ["linux-64/a-1.0-h0_0.conda", "noarch/b-c-2.0-py_0.tar.bz2"]
    assert [sorted(each.digests) for each in lock.wanted] == [[("md5", "b" * 32)], [("sha256", HEX)]]
    assert [each.name for each in lock.wanted] == ["a", "b-c"]


def test_conda_lock_and_pixi_have_two_formats() -> None:
    url, wheel = "https://c.example/x/noarch/a-1.0-py_0.conda", "https://f.example/b_c-1.0-py3-none-any.whl"
    text = (
        f"version: 1\npackage:\n- name: a\n  version: '1.0'\n  manager: conda\n  url: {url}\n"
        f"  hash: {{sha256: {HEX}}}\n"
        f"- name: b-c\n  version: '1.0'\n  manager: pip\n  url: {wheel}\n  hash: {{sha256: {HEX}}}\n"
    )
    pixi = f"version: 6\nenvironments: {{}}\npackages:\n- conda: {url}\n  sha256: {HEX}\n"
    pixi += f"- pypi: {wheel}\n  sha256: {HEX}\n"
    for name, each in (("conda-lock.yml", text), ("pixi.lock", pixi)):
        assert files(read_lock(name, each, "conda", FORMATS)) == ["noarch/a-1.0-py_0.conda"]
        (found,) = read_lock(name, each, "python", FORMATS).wanted
        assert (found.name.replace("_", "-"), found.file) == ("b-c", "b_c-1.0-py3-none-any.whl")
        assert ("sha256", HEX) in found.digests


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("[INFO]    g.h:a:jar:1.0:compile -- module x", ["a-1.0.pom", "a-1.0.jar"]),
        ("[INFO] |  +- g.h:a:test-jar:tests:1.0:test", ["a-1.0.pom", "a-1.0-tests.jar"]),
        ("g.h:a:1.0", ["a-1.0.pom", "a-1.0.jar"]),
        ("g.h:a:1.0=compileClasspath,runtimeClasspath", ["a-1.0.pom", "a-1.0.jar"]),
        ("g.h:a:pom:1.0:import", ["a-1.0.pom"]),
    ],
    ids=range(5),
)
def test_coordinates_of_maven(line: str, paths: list[str]) -> None:
    assert files(read_maven(line)) == [f"g/h/a/1.0/{each}" for each in paths]


def test_paths_of_maven_may_have_digests() -> None:
    lock = read_maven(f"{HEX}  g/h/a/1.0/a-1.0.jar\ng/h/a/maven-metadata.xml\n")
    assert files(lock) == ["g/h/a/1.0/a-1.0.jar", "g/h/a/maven-metadata.xml"]
    assert lock.wanted[0].digests == {("sha256", HEX)}
    assert lock.wanted[0].name == "g.h:a"


def test_a_tree_does_not_name_the_project_itself() -> None:
    lock = read_maven("[INFO] own:app:jar:1.0\n[INFO] +- g:a:jar:2.0:compile\n")
    assert files(lock) == ["g/a/2.0/a-2.0.pom", "g/a/2.0/a-2.0.jar"]


def test_a_pom_is_refused_with_the_way_out() -> None:
    with pytest.raises(Invalid, match=r"maven\.repo\.local"):
        read_lock("pom.xml", "<?xml version='1.0'?>\n<project>\n</project>", "maven", FORMATS)


def test_images_have_tags_digests_and_platforms() -> None:
    lock = read_images(
        f"# all\nalpine\nr.example:5000/team/app:1 linux/amd64,linux/arm64\nx@sha256:{HEX}\nbad@sha256:0\n"
    )
    assert [(each.name, each.version, each.platforms) for each in lock.wanted] == [
        ("alpine", "latest", ()),
        ("team/app", "1", ("linux/amd64", "linux/arm64")),
        ("x", f"sha256:{HEX}", ()),
    ]
    assert len(lock.left_out) == 1


def test_the_strongest_digest_of_both_sides_decides() -> None:
    wanted = frozenset({("sha1", "1"), ("sha256", "2"), ("sha256", "3")})
    assert differs(wanted, {"sha1": "1", "sha256": "4"}) is True
    assert differs(wanted, {"sha1": "0", "sha256": "3"}) is False
    assert differs(wanted, {"md5": "1"}) is None
    assert differs(frozenset(), {"md5": "1"}) is False


def test_a_file_of_another_format_is_refused() -> None:
    with pytest.raises(Invalid, match="nothing for a repository of the format ruby"):
        read_lock("package-lock.json", '{"packages": {"node_modules/a": {"version": "1.0.0"}}}', "ruby", FORMATS)


def test_what_is_named_is_chosen_by_its_place() -> None:
    chosen = Chosen(FORMATS["python"], ["*.whl"])
    chosen.add(Lock([Wanted(format="python", name="A.b", version="1.0", digests=frozenset({("sha256", HEX)}))]))
    assert chosen.has_package("a-b")
    wheel, sdist = "packages/a-b/1.0/a_b-1.0-py3-none-any.whl", "packages/a-b/1.0/a_b-1.0.tar.gz"
    assert chosen.takes("a-b", "1.0.0", wheel, {"sha256": HEX})
    assert not chosen.takes("a-b", "1.0", wheel, {"sha256": "b" * 64})
    assert not chosen.takes("a-b", "1.0", sdist, {"sha256": HEX})
    assert chosen.missing() == {}


@pytest.mark.parametrize(
    ("name", "text", "formats"),
    [
        ("yarn.lock", "", "npm"),
        ("x/uv.lock", "", "python"),
        ("pixi.lock", "", "conda python"),
        ("linux.txt", "# x\n@EXPLICIT\n", "conda"),
        ("dev-requirements.txt", "a==1", "python"),
        ("images.txt", "alpine", "docker"),
        ("tree.txt", "[INFO] a:b:jar:1:compile", "maven"),
        ("list of a local Maven repository", "a/b/1/b-1.jar", "maven"),
        ("list.txt", "a", "docker maven python"),
    ],
    ids=range(9),
)
def test_the_formats_that_a_file_may_be_for(name: str, text: str, formats: str) -> None:
    assert " ".join(sorted(find_formats(name, text, FORMATS))) == formats
