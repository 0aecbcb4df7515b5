"""What lock files of Python name."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python import locks as python
from pkgrepo.gateway.mirrored.locks import Lock

HEX = "a" * 64
WHEEL = "a_b-1.0-py3-none-any.whl"


def names(lock: Lock) -> list[tuple[str, str, str, bool]]:
    return [(each.name, each.version, each.file, ("sha256", HEX) in each.digests) for each in lock.wanted]


def test_requirements_have_pins_and_hashes() -> None:
    lock = python.read_requirements(
        "# a comment\n--index-url https://i.example/simple\na-b[x]==1.0 ; python_version > '3' \\\n"
        f"  --hash=sha256:{HEX} \\\n  --hash=sha256:{'b' * 64}\n"
        "c===2.0  # via a\nd>=1\ne==1.*\nf @ https://h.example/f.whl\n-r other.txt\n-e .\n./g\n"
    )
    assert names(lock) == [("a-b", "1.0", "", True), ("c", "2.0", "", False)]
    assert [item for item, _ in lock.left_out] == ["d>=1", "e==1.*", "f @ https://h.example/f.whl", "-r other.txt"]


def test_uv() -> None:
    lock = python.read_uv(
        'version = 1\n[[package]]\nname = "a-b"\nversion = "1.0"\nsource = { registry = "https://i.example/simple" }\n'
        f'sdist = {{ url = "https://f.example/a_b-1.0.tar.gz", hash = "sha256:{"b" * 64}" }}\n'
        f'wheels = [{{ url = "https://f.example/x/{WHEEL}", hash = "sha256:{HEX}", size = 3 }}]\n'
        '[[package]]\nname = "root"\nversion = "0"\nsource = { editable = "." }\n'
        '[[package]]\nname = "g"\nversion = "1"\nsource = { git = "https://h.example/g" }\n'
    )
    assert names(lock) == [("a-b", "1.0", "a_b-1.0.tar.gz", False), ("a-b", "1.0", WHEEL, True)]
    assert [item for item, _ in lock.left_out] == ["g 1"]


@pytest.mark.parametrize(
    "files",
    [
        f'files = [{{ file = "{WHEEL}", hash = "sha256:{HEX}" }}]\n',
        f'[metadata.files]\na-b = [{{ file = "{WHEEL}", hash = "sha256:{HEX}" }}]\n',
    ],
    ids=["2", "1"],
)
def test_poetry(files: str) -> None:
    lock = python.read_poetry(f'[[package]]\nname = "a-b"\nversion = "1.0"\n{files}')
    assert names(lock) == [("a-b", "1.0", WHEEL, True)]


def test_pylock() -> None:
    lock = python.read_pylock(
        'lock-version = "1.0"\n[[packages]]\nname = "a-b"\nversion = "1.0"\n'
        f'[[packages.wheels]]\nname = "{WHEEL}"\nurl = "https://f.example/x"\nhashes = {{ sha256 = "{HEX}" }}\n'
        '[[packages]]\nname = "g"\n[packages.vcs]\ntype = "git"\n'
        '[[packages]]\nname = "d"\n[packages.directory]\npath = "d"\n'
    )
    assert names(lock) == [("a-b", "1.0", WHEEL, True)]
    assert [item for item, _ in lock.left_out] == ["g"]


def test_pipfile() -> None:
    entries = {"a-b": {"version": "==1.0", "hashes": [f"sha256:{HEX}"]}, "l": {"path": "."}, "g": {"git": "x"}}
    lock = python.read_pipfile(json.dumps({"_meta": {}, "default": entries, "develop": {}}))
    assert names(lock) == [("a-b", "1.0", "", True)]
    assert [item for item, _ in lock.left_out] == ["g"]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (python.read_uv, "a = ["),
        (python.read_poetry, "= 1"),
        (python.read_pylock, ""),
        (python.read_pipfile, "{}"),
        (python.read_pipfile, "["),
    ],
    ids=range(5),
)
def test_other_texts_are_refused(read: Callable[[str], Lock], text: str) -> None:
    with pytest.raises(Invalid):
        read(text)


def test_what_is_editable_and_comes_from_elsewhere_is_named() -> None:
    lines = ["-e git+https://h.example/g@v1#egg=g", "--editable git+ssh://h.example/g.git", "-e git@h.example:g.git"]
    lock = python.read_requirements("\n".join([*lines, "-e ./here", "-e file:///srv/here"]))
    assert lock.left_out == [(each, python.NO_INDEX) for each in lines]

    entries = {
        "g": {"editable": True, "git": "https://h.example/g", "ref": "a"},
        "f": {"file": "https://h.example/f.whl"},
        "here": {"editable": True, "path": "."},
        "also": {"file": "file:///srv/also.whl"},
    }
    lock = python.read_pipfile(json.dumps({"_meta": {}, "default": entries}))
    assert lock.left_out == [("g", python.NO_INDEX), ("f", python.NO_INDEX)]
