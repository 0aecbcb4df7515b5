"""What jars say of themselves: manifests with long lines, and the Java of their classes."""

import pytest

from pkgrepo.formats.maven.upload.jar import read_jar
from tests.support.maven_bundles import make_jar

OSGI = (
    b"Manifest-Version: 1.0\r\nBundle-Name: A bundle with a name that is longer than a line of a mani\r\n"
    b" fest may be\r\nBundle-Description: What it does\r\nBundle-License: Apache-2.0;link=https://example.org\r\n"
    b"Bundle-DocURL: javascript:alert(1)\r\nImplementation-URL: https://example.org\r\nBuild-Jdk-Spec: 21\r\n\r\n"
    b"Name: a/b\r\nBundle-Name: of a section\r\n"
)


def class_file(major):
    return b"\xca\xfe\xba\xbe\x00\x00" + major.to_bytes(2, "big") + bytes(100)


def test_a_manifest_says_what_the_pom_may_not_say():
    assert read_jar(make_jar({"META-INF/MANIFEST.MF": OSGI})) == {
        "name": "A bundle with a name that is longer than a line of a manifest may be",
        "description": "What it does",
        "license": "Apache-2.0",
        "requires_java": "21",
    }


@pytest.mark.parametrize(("major", "java"), [(45, "1"), (52, "8"), (61, "17"), (69, "25"), (7, None), (60_000, None)])
def test_the_java_is_that_of_the_first_class_which_every_java_loads(major, java):
    members = {
        "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n",
        "META-INF/versions/21/a/B.class": class_file(65),
        "module-info.class": class_file(53),
        "a/B.class": class_file(major),
    }
    assert read_jar(make_jar(members)).get("requires_java") == java
    members["META-INF/MANIFEST.MF"] += b"Build-Jdk-Spec: 23\n"
    assert read_jar(make_jar(members))["requires_java"] == (java or "23")


@pytest.mark.parametrize(
    "content", [b"", b"no archive", make_jar()[:-9], make_jar({"META-INF/MANIFEST.MF": b"\x00\xff: "})]
)
def test_what_cannot_be_read_says_nothing(content):
    assert read_jar(content) == {}
