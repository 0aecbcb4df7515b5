"""How people name versions to commands."""

import pytest

from pkgrepo.client.named_versions import maybe_version, named_version
from pkgrepo.errors import Invalid

NAMED = [
    (("demo==1.2", None), ("demo", "1.2")),
    (("demo@1.2", None), ("demo", "1.2")),
    (("@scope/demo@1.2", None), ("@scope/demo", "1.2")),
    (("com.acme:app:1.2", None), ("com.acme:app", "1.2")),
    (("app@sha256:ab", None), ("app", "sha256:ab")),
    (("team/app:v1", None), ("team/app", "v1")),
    (("demo==1.2", "3"), ("demo==1.2", "3")),
]


@pytest.mark.parametrize(("given", "found"), NAMED, ids=str)
def test_a_version_is_a_part_of_the_name_or_an_argument_of_its_own(given, found):
    assert named_version(*given) == found


@pytest.mark.parametrize("name", ["demo", "@scope/demo", "demo==", "==1"])
def test_a_name_without_a_version_is_refused(name):
    with pytest.raises(Invalid):
        named_version(name, None)


def test_names_with_colons_and_at_signs_are_whole_where_the_version_may_be_left_out():
    assert maybe_version("com.acme:app", None) == ("com.acme:app", None)
    assert maybe_version("@scope/demo", None) == ("@scope/demo", None)
    assert maybe_version("com.acme:app==1", None) == ("com.acme:app", "1")
    assert maybe_version("demo", "1") == ("demo", "1")
    assert maybe_version("icon@2x.png", None) == ("icon@2x.png", None)
    assert maybe_version("demo@latest", None) == ("demo@latest", None)
    assert maybe_version("Perl::Module", None) == ("Perl::Module", None)
    assert maybe_version("team/app:v1", "2") == ("team/app:v1", "2")


def test_versions_after_colons_are_those_of_maven_and_images():
    digest = f"sha256:{'a1' * 32}"
    assert maybe_version("com.acme:app:1.2", None) == ("com.acme:app", "1.2")
    assert maybe_version("com.acme:app:main-SNAPSHOT", None) == ("com.acme:app", "main-SNAPSHOT")
    assert maybe_version("team/app:1", None) == ("team/app", "1")
    assert maybe_version(f"team/app@{digest}", None) == ("team/app", digest)
    assert maybe_version("team/app:stable", None) == ("team/app:stable", None)  # may be an artifact of a group
    assert maybe_version("team/app:stable", None, is_image=True) == ("team/app", "stable")


@pytest.mark.parametrize("version", ["1", "1.3.1", "v1.0.0", "2.0.0-rc.1", "1.0+cpu", "1.0rc1", "1.0.dev3"])
@pytest.mark.parametrize("name", ["demo", "@scope/demo"])
def test_what_looks_like_a_version_after_an_at_sign_is_one(name, version):
    assert maybe_version(f"{name}@{version}", None) == (name, version)
