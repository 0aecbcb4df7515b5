"""What lock files of npm, yarn, pnpm and bun name."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import locks as npm
from pkgrepo.gateway.mirrored.locks import Lock

SHA = ("sha512", "aa" * 64)
INTEGRITY = "sha512-" + "qqqq" * 21 + "qg=="
GIT = "git+ssh://git@host.example/a.git#0123"


def names(lock: Lock) -> list[tuple[str, str, bool]]:
    return [(each.name, each.version, SHA in each.digests) for each in lock.wanted]


def test_package_lock_names_what_a_registry_has() -> None:
    packages = {
        "": {"name": "root", "version": "1.0.0"},
        "node_modules/a": {"version": "1.0.0", "resolved": "https://r.example/a/-/a-1.0.0.tgz", "integrity": INTEGRITY},
        "node_modules/a/node_modules/@s/b": {"version": "2.0.0-rc.1"},
        "node_modules/other": {"name": "real", "version": "3.0.0"},
        "node_modules/linked": {"resolved": "packages/linked", "link": True},
        "node_modules/a/node_modules/inside": {"version": "1.0.0", "inBundle": True},
        "packages/linked": {"version": "0.0.1"},
        "node_modules/g": {"version": "1.0.0", "resolved": GIT},
        "node_modules/t": {"version": "1.0.0", "resolved": "https://r.example/else.tgz"},
        "node_modules/f": {"version": "1.0.0", "resolved": "file:f.tgz"},
    }
    lock = npm.read_package_lock(json.dumps({"lockfileVersion": 3, "packages": packages}))
    assert names(lock) == [("a", "1.0.0", True), ("@s/b", "2.0.0-rc.1", False), ("real", "3.0.0", False)]
    assert [item for item, _ in lock.left_out] == ["g 1.0.0", "t 1.0.0"]


def test_package_lock_of_version_1_nests() -> None:
    dependencies = {
        "a": {"version": "1.0.0", "integrity": INTEGRITY, "dependencies": {"b": {"version": "2.0.0"}}},
        "c": {"version": "npm:@s/real@3.0.0"},
        "inside": {"version": "1.0.0", "bundled": True},
        "g": {"version": GIT},
        "l": {"version": "file:../l"},
    }
    lock = npm.read_package_lock(json.dumps({"lockfileVersion": 1, "dependencies": dependencies}))
    assert names(lock) == [("a", "1.0.0", True), ("b", "2.0.0", False), ("@s/real", "3.0.0", False)]
    assert len(lock.left_out) == 1


def test_yarn_1() -> None:
    lock = npm.read_yarn(
        "# yarn lockfile v1\n\n"
        '"@s/b@^2.0.0", "@s/b@~2.0.0":\n  version "2.0.0"\n'
        f'  resolved "https://r.example/@s/b/-/b-2.0.0.tgz#{"c" * 40}"\n'
        f'  dependencies:\n    a "^1.0.0"\n\nc@npm:real@^3.0.0:\n  version "3.0.0"\n  integrity {INTEGRITY}\n\n'
        f'g@{GIT}:\n  version "1.0.0"\n  resolved "{GIT}"\n\n"l@file:l":\n  version "1.0.0"\n'
    )
    assert names(lock) == [("@s/b", "2.0.0", False), ("real", "3.0.0", True)]
    assert ("sha1", "c" * 40) in lock.wanted[0].digests
    assert len(lock.left_out) == 1


def test_yarn_berry() -> None:
    lock = npm.read_yarn(
        '__metadata:\n  version: 8\n\n"a@npm:^1.0.0":\n  version: 1.0.0\n  resolution: "a@npm:1.0.0"\n'
        '\n"@s/b@npm:x":\n  version: 2.0.0\n  resolution: "@s/b@npm:2.0.0::__archiveUrl=https%3A%2F%2Fr.example"\n'
        '\n"root@workspace:.":\n  version: 0.0.0-use.local\n  resolution: "root@workspace:."\n'
        '\n"g@https://h.example/g.git":\n  version: 1.0.0\n  resolution: "g@https://h.example/g.git#commit=1"\n'
    )
    assert names(lock) == [("a", "1.0.0", False), ("@s/b", "2.0.0", False)]
    assert len(lock.left_out) == 1


@pytest.mark.parametrize("key", ["/a/1.0.0_b@2.0.0", "/a@1.0.0(b@2.0.0)", "a@1.0.0"])
def test_pnpm(key: str) -> None:
    lock = npm.read_pnpm(
        f"lockfileVersion: '9.0'\npackages:\n  '{key}':\n    resolution: {{integrity: {INTEGRITY}}}\n"
        "  '@s/b@2.0.0':\n    resolution: {tarball: https://r.example/@s/b/-/b-2.0.0.tgz}\n"
        "  'g@git+x':\n    resolution: {repo: x, commit: y}\n  l:\n    resolution: {directory: l}\n"
    )
    assert names(lock) == [("a", "1.0.0", True), ("@s/b", "2.0.0", False)]
    assert len(lock.left_out) == 1


def test_bun_has_commas_at_the_end() -> None:
    lock = npm.read_bun(
        '{"lockfileVersion": 1, "packages": {"a": ["a@1.0.0", "", {}, "' + INTEGRITY + '"], "w": ["w@workspace:w"],},}'
    )
    assert names(lock) == [("a", "1.0.0", True)]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (npm.read_package_lock, "[]"),
        (npm.read_package_lock, "{}"),
        (npm.read_package_lock, "{" * 100_000),
        (npm.read_yarn, "nothing"),
        (npm.read_pnpm, "a: [b"),
        (npm.read_pnpm, "[" * 100_000),
        (npm.read_pnpm, "lockfileVersion: &a 1\nb: *a\n"),
        (npm.read_bun, "x"),
    ],
    ids=range(8),
)
def test_other_texts_are_refused(read: Callable[[str], Lock], text: str) -> None:
    with pytest.raises(Invalid):
        read(text)
