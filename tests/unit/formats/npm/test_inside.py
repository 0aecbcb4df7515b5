"""What runs when a tarball is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.inside import look
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
