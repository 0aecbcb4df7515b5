"""What runs when a tarball is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.inside import look, shape_of
from tests.support.tarballs import make_tar_gz

BUILD = {"install_script", "native_build"}


def pack(manifest: Any, *more: str, top: str = "package") -> bytes:
    data = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    return make_tar_gz({f"{top}/package.json": data, **{f"{top}/{each}": b"x" for each in more}})


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (pack({"name": "a"}), set()),
        (pack({"scripts": {"test": "x", "prepare": "x"}}), set()),
        (pack({"scripts": {"postinstall": "node evil.js"}}), {"install_script"}),
        (pack({"scripts": {"preinstall": "x"}}, top="./other"), {"install_script"}),
        (pack({"scripts": {"install": "prebuild-install || node-gyp rebuild"}}), BUILD),
        (pack({"scripts": {"install": ""}}), set()),
        (pack({"scripts": ["install"]}), set()),
        (pack(b"\xef\xbb\xbf" + b'{"scripts":{"install":"x"}}'), {"install_script"}),
        (pack({"name": "a"}, "binding.gyp"), BUILD),
        (pack({"name": "a"}, "deep/binding.gyp", "deep/package.json/x"), set()),
    ],
)
def test_what_npm_runs_is_found(data: bytes, found: set[str]) -> None:
    assert look(data, "a-1.0.0.tgz").words == found


RUNS = json.dumps({"scripts": {"postinstall": "node evil.js"}}).encode()
NPM_RUNS = [
    "package/package.json",
    "/package.json",
    "package//package.json",
    "package/./package.json",
    "x/package.json",
]
OTHERS_RUN = ["package/a/../package.json", "a/../package.json", "package\\package.json", "package/PACKAGE.JSON"]
BUNDLED = [
    "package/node_modules/evil/package.json",
    "package/node_modules/@a/evil/package.json",
    "package/node_modules/a/node_modules/evil/package.json",
    "package/./node_modules//evil/package.json",
]


@pytest.mark.parametrize("name", [*NPM_RUNS, *OTHERS_RUN, *BUNDLED])
def test_all_spellings_of_a_path_and_packages_in_a_tarball_are_found(name: str) -> None:
    assert look(make_tar_gz({"package/package.json": b"{}", name: RUNS}), "a-1.0.0.tgz").words == {"install_script"}
    gyp = name.replace("package.json", "binding.gyp").replace("PACKAGE.JSON", "binding.gyp")
    assert look(make_tar_gz({"package/package.json": b"{}", gyp: b""}), "a-1.0.0.tgz").words == BUILD


@pytest.mark.parametrize("name", ["package/test/package.json", "package/test/node_modules/evil/package.json"])
def test_what_npm_does_not_take_for_a_package_runs_nothing(name: str) -> None:
    assert look(make_tar_gz({"package/package.json": b"{}", name: RUNS}), "a-1.0.0.tgz").words == set()


def test_a_bundled_package_says_nothing_of_the_one_around_it() -> None:
    found = look(pack({}, top="package"), "a-1.0.0.tgz")
    inner = json.dumps({"license": "BUSL-1.1", "dependencies": {"other": "1"}}).encode()
    bundled = make_tar_gz({"package/package.json": b"{}", BUNDLED[0]: inner})
    shape = look(bundled, "a-1.0.0.tgz").shape
    assert (shape.dependencies, shape.licences) == (found.shape.dependencies, found.shape.licences) == ((), ())


@pytest.mark.parametrize("text", ["npm:evil@1.0.0", "NPM:evil@^1", " npm:evil", "Npm:evil"])
def test_the_package_behind_another_name_is_the_one_that_is_needed(text: str) -> None:
    shape = shape_of({"dependencies": {"good": text}})
    assert (shape.dependencies, shape.aliases, shape.direct) == (("evil", "good"), ("good",), ())


@pytest.mark.parametrize(
    "text",
    ["GitHub:a/b", "a/b", "a/b#c", "GIT+ssh://h/x", "HTTPS://h/x.tgz", "sourcehut:~a/b", "git@h:a/b", "me@h:a/b"],
)
def test_what_comes_from_an_address_is_direct(text: str) -> None:
    assert shape_of({"dependencies": {"good": text}}).direct == ("good",)


@pytest.mark.parametrize("text", ["^1.0.0", "*", "latest", ">=1 <2 || 3", "npm:a@1", ""])
def test_what_comes_from_the_registry_is_not(text: str) -> None:
    assert shape_of({"dependencies": {"good": text}}).direct == ()


@pytest.mark.parametrize("manifest", [b"", b"{", b"[" * 100_000, b'{"a":"\xff"}'])
def test_a_manifest_that_npm_could_read_otherwise_is_refused(manifest: bytes) -> None:
    with pytest.raises(Invalid):
        look(pack(manifest), "a-1.0.0.tgz")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({}, ("LicenseRef-unknown",)),
        ({"license": "MIT"}, ("LicenseRef-unknown", "MIT")),
        ({"license": {"type": "BUSL-1.1"}}, ("BUSL-1.1", "LicenseRef-unknown")),
        ({"licenses": [{"type": "MIT"}, "BSD"]}, ("BSD", "LicenseRef-unknown", "MIT")),
    ],
)
def test_licences_are_those_declared_in_the_tarball_and_the_text_in_it(manifest: Any, said: tuple[str, ...]) -> None:
    assert look(pack(manifest, "LICENSE", "deep/LICENSE"), "a-1.0.0.tgz").shape.licences == said
