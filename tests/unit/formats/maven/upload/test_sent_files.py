"""Files of forms that say themselves where they belong."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.upload.requests import find_place, read_place
from tests.support.maven_bundles import make_jar
from tests.support.maven_files import make_pom

POM = make_pom("org.acme", "app", "1.0")
INNER = "META-INF/maven/org.acme/app/pom.xml"


@pytest.mark.parametrize(
    ("name", "content", "path"),
    [
        ("any.pom", POM, "org/acme/app/1.0/app-1.0.pom"),
        ("pom.xml", POM, "org/acme/app/1.0/app-1.0.pom"),
        ("app-1.0.jar", make_jar({INNER: POM}), "org/acme/app/1.0/app-1.0.jar"),
        ("app-1.0-sources.jar", make_jar({INNER: POM}), "org/acme/app/1.0/app-1.0-sources.jar"),
    ],
)
def test_a_pom_says_where_a_file_belongs(name: str, content: bytes, path: str) -> None:
    assert find_place(content, name).path == path


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("app-1.0.jar", make_jar({"a": b""}), "does not say where it belongs"),
        ("app-1.0.jar", b"junk", "does not say where it belongs"),
        ("app-1.0.jar", make_jar({INNER: POM, INNER.replace("app", "lib"): POM}), "does not say where it belongs"),
        ("app-1.0.jar", make_jar({INNER: make_pom("org.acme", "app", "${revision}")}), "does not say where it belongs"),
        ("lib-1.0.jar", make_jar({INNER: POM}), "does not begin with app-1.0"),
        ("any.pom", b"<project>", "POM"),
    ],
)
def test_what_does_not_say_it_is_refused(name: str, content: bytes, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        find_place(content, name)


@pytest.mark.parametrize("path", ["x/y", "org/acme/maven-metadata.xml", "org/acme/app/1.0/app-1.0.jar.sha1"])
def test_a_path_is_one_of_an_artifact(path: str) -> None:
    with pytest.raises(Invalid, match="is no path of an artifact"):
        read_place(path)
