"""Lock files that are to cost the server its memory or its time, and addresses with secrets in them."""

from __future__ import annotations

import json

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.locks import read_explicit
from pkgrepo.formats.maven.locks import read_maven
from pkgrepo.formats.npm import locks as npm
from pkgrepo.formats.python import locks as python
from pkgrepo.gateway.mirrored import locks as wanted
from pkgrepo.gateway.mirrored.reading import read_lock
from tests.support.lock_files import FORMATS

LONG = 1_000_000  # of what takes the square of its length, it would take hours


def test_long_versions_take_no_time() -> None:
    text = json.dumps({"packages": {"node_modules/a": {"version": f"1.1.{'1' * LONG}!"}}})
    lock = npm.read_package_lock(text)
    assert (lock.wanted, len(lock.left_out)) == ([], 1)
    assert (
        npm.read_pnpm(f"lockfileVersion: '9.0'\npackages:\n  a@1.1.{'1' * 900}!:\n    resolution: {{}}\n").wanted == []
    )


def test_long_lines_of_artifacts_are_left_out() -> None:
    lock = read_maven(f"{'-a' * LONG}!\n+- org.x:y:jar:1.0:compile\n")
    assert [each.version for each in lock.wanted] == ["1.0", "1.0"]
    assert [reason for _, reason in lock.left_out] == ["the line is too long"]


@pytest.mark.parametrize(
    "text",
    [
        f"a{'.a' * LONG} = 1",
        f'"a"{" . " + chr(39) + "a" + chr(39)}' * 300 + " = 1",
        f"a = {'1' * 5000}",
        "a=" + "[" * LONG,
    ],
    ids=["parts", "quoted", "digits", "depth"],
)
def test_toml_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        python.read_uv(text)


def test_json_of_too_many_values_is_refused() -> None:
    text = '{"packages": {}, "x": [' + "{}," * 1_000_000 + "{}]}"
    for read in (npm.read_package_lock, python.read_pipfile):
        with pytest.raises(Invalid, match="too many values"):
            read(text)


def test_deep_markers_of_requirements_are_left_out() -> None:
    deep = "(" * 900
    lock = python.read_requirements(f"a==1; {deep}\nb==1{'0' * LONG}\nc==1.0\n")
    assert [each.name for each in lock.wanted] == ["c"]
    assert len(lock.left_out) == 2


@pytest.mark.parametrize(
    ("name", "text", "format_name"),
    [
        ("package-lock.json", '{"packages": {"node_modules/a": {"version": "1.0.0", "resolved": "http://["}}}', "npm"),
        ("list.txt", "@EXPLICIT\nhttp://[/noarch/a-1-0.conda\n", "conda"),
        ("uv.lock", '[[package]]\nname = "a"\nversion = "1"\nsdist = { url = "http://[" }\n', "python"),
    ],
    ids=["npm", "conda", "python"],
)
def test_addresses_that_are_none(name: str, text: str, format_name: str) -> None:
    lock = read_lock(name, text, format_name, FORMATS)
    assert all("[" not in each.file for each in lock.wanted)


def test_what_is_named_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted, "MOST_WANTED", 3)
    for text in ("a==1\nb==1\nc==1\nd==1\n", "a\nb\nc\nd\n"):
        with pytest.raises(Invalid, match="more than 3"):
            read_lock("requirements.txt", text, "python", FORMATS)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a @ https://ada:s3cret@h.example/a.whl", "a @ https://h.example/a.whl"),
        ("a @ git+https://s3cret@h.example/a.git", "a @ git+https://h.example/a.git"),
        ("a @ https://h.example/t/s3cret/a.whl", "a @ https://h.example/t/.../a.whl"),
        ("a @ https://h.example/a.whl?sig=s3cret#x", "a @ https://h.example/a.whl#x"),
        (f"a @ https://ada:{'s3cret' * 100}@h.example/a.whl", "a @ https://h.example/a.whl"),
    ],
    ids=["password", "git", "channel", "signature", "long"],
)
def test_secrets_are_in_no_report(line: str, shown: str) -> None:
    assert [item for item, _ in python.read_requirements(line).left_out] == [shown]


def test_a_channel_has_the_folders_that_conda_knows() -> None:
    for url in ("https://h.example/c/%2e%2e/a-1-0.conda", "https://h.example/c/x%3Fy/a-1-0.conda"):
        lock = read_explicit(f"@EXPLICIT\n{url}\n")
        with pytest.raises(Invalid, match="subdir"):
            list(FORMATS["conda"].document_keys(lock.wanted[0]))
