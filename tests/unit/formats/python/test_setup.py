"""Setup snippets and the configuration."""

import configparser
import tomllib

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.configuration import CONFIGURATIONS
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


def test_the_type_is_hosted_unless_it_is_said():
    assert CONFIGURATIONS.validate({}) == CONFIGURATIONS.validate({"type": "Hosted"}) == ({"type": "Hosted"}, {})


def test_switches_are_off_unless_they_are_set():
    _, settings = CONFIGURATIONS.validate({"policy": {"allow_overwrite": True}})
    assert settings["policy"]["allow_overwrite"] is True
    assert not settings["policy"].get("reuse_deleted_names")
    assert not settings["policy"].get("strict_filenames")


def test_keys_of_others_are_kept_when_they_say_so():
    _, settings = CONFIGURATIONS.validate({"x_team": ["a"], "page": "hello", "auth": {"enabled": True}})
    assert settings == {"x_team": ["a"], "page": "hello", "auth": {"enabled": True}}


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"type": "Group"}, "/type"),
        ({"polcy": {}}, "/polcy"),
        ({"policy": {"allow_overwirte": True}}, "/policy/allow_overwirte"),
        ({"policy": {"allow_overwrite": "yes"}}, "/policy/allow_overwrite"),
        ({"policy": []}, "/policy"),
        ({"auth": {"enabled": 1}}, "/auth/enabled"),
        ({"page": 1}, "/page"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(config, pointer):
    with pytest.raises(Invalid) as raised:
        CONFIGURATIONS.validate(config)
    assert raised.value.pointer == pointer


def test_the_schema_names_every_key():
    text = str(CONFIGURATIONS.schema())
    for key in ("allow_overwrite", "strict_filenames", "reuse_deleted_names", "enabled", "page"):
        assert key in text
