"""Plugins: the prefix is read from the descriptor in the jar, or derived from the artifact's name."""

import os

import pytest

from pkgrepo.formats.maven.configuration import PLUGIN_SIZE
from pkgrepo.formats.maven.metadata.plugins import DESCRIPTOR, find_plugin, usual_plugin, usual_prefix
from tests.support.maven_bundles import make_jar

WHOLE = b"<plugin><name>The  plugin\n</name><goalPrefix> foo </goalPrefix></plugin>"


def find(descriptor, artifact="foo-maven-plugin"):
    return find_plugin(make_jar({DESCRIPTOR: descriptor}), artifact)


def test_prefix_and_name_are_those_of_the_descriptor():
    assert find(WHOLE) == {"prefix": "foo", "name": "The plugin"}


def test_a_jar_is_read_from_a_file_too(tmp_path):
    path = tmp_path / "x.jar"
    path.write_bytes(make_jar({DESCRIPTOR: WHOLE}))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert find_plugin(descriptor, "x") == {"prefix": "foo", "name": "The plugin"}
    finally:
        os.close(descriptor)


def test_what_the_descriptor_does_not_say_is_usual():
    assert find(b"<plugin/>", "bar-maven-plugin") == {"prefix": "bar", "name": "bar-maven-plugin"}
    assert usual_plugin("maven-baz-plugin") == {"prefix": "baz", "name": "maven-baz-plugin"}


@pytest.mark.parametrize(
    "descriptor",
    [
        b"",
        b"<plugin>",
        b"<other/>",
        b"\xff\xfe",
        b'<!DOCTYPE p [<!ENTITY a "b">]><plugin><goalPrefix>&a;</goalPrefix></plugin>',
        b"<plugin><name>" + b"x" * PLUGIN_SIZE + b"</name></plugin>",
    ],
)
def test_other_descriptors_are_none(descriptor):
    assert find(descriptor) is None


@pytest.mark.parametrize("content", [b"", b"no jar", make_jar()])
def test_other_files_are_no_plugins(content):
    assert find_plugin(content, "x") is None


def test_long_values_are_cut():
    found = find(b"<plugin><name>%s</name><goalPrefix>%s</goalPrefix></plugin>" % (b"n" * 999, b"p" * 999))
    assert {key: len(value) for key, value in found.items()} == {"prefix": 200, "name": 200}


@pytest.mark.parametrize(
    ("artifact", "prefix"),
    [
        ("foo-maven-plugin", "foo"),
        ("maven-foo-plugin", "foo"),
        ("maven-plugin-plugin", "plugin"),
        ("foo-bar-maven-plugin", "foo-bar"),
        ("foo", "foo"),
        ("maven-", "maven-"),
    ],
)
def test_prefixes_follow_from_conventional_names(artifact, prefix):
    assert usual_prefix(artifact) == prefix
