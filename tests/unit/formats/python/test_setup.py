"""What people paste to point their tools at a repository."""

import configparser
import tomllib

import pytest

from pkgrepo.formats.python.setup import snippets

URL = "https://packages.example:8443/prefix/repositories/main/py"


@pytest.fixture
def entries():
    return snippets(URL, publishes=True)


def by_title(entries, title):
    return next(entry["text"] for entry in entries if entry["title"] == title)


def test_every_tool_is_there(entries):
    assert {entry["client"] for entry in entries} == {"pip", "uv", "twine", "poetry", "curl"}


def test_files_are_what_their_tools_read(entries):
    pip = configparser.ConfigParser(interpolation=None)
    pip.read_string(by_title(entries, "pip.conf"))
    assert pip["global"]["index-url"] == URL.replace("https://", "https://__token__:<TOKEN>@") + "/simple/"
    [index] = tomllib.loads(by_title(entries, "pyproject.toml"))["tool"]["uv"]["index"]
    assert (index["url"], index["publish-url"], index["default"]) == (f"{URL}/simple/", f"{URL}/legacy/", True)
    pypirc = configparser.ConfigParser(interpolation=None)
    pypirc.read_string(by_title(entries, ".pypirc"))
    assert pypirc["distutils"]["index-servers"] == "pkgrepo"
    assert pypirc["pkgrepo"]["repository"] == f"{URL}/legacy/"
    assert pypirc["pkgrepo"]["username"] == "__token__"


def test_commands_name_the_address_for_their_direction(entries):
    for entry in entries:
        if entry["language"] == "sh" and entry["title"].startswith("Publish with"):
            assert f"{URL}/legacy/" in entry["text"]
    assert f"{URL}/simple/" in by_title(entries, "Install with pip")


def test_repositories_that_take_nothing_have_no_snippet_for_publishing():
    entries = snippets(URL, publishes=False)
    assert {entry["client"] for entry in entries} == {"pip", "uv", "poetry"}
    [index] = tomllib.loads(by_title(entries, "pyproject.toml"))["tool"]["uv"]["index"]
    assert index == {"name": "pkgrepo", "url": f"{URL}/simple/", "default": True}
    assert "legacy" not in str(entries)
