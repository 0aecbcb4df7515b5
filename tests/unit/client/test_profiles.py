"""Profiles are in a file that only its owner can read, and their tokens go to their own servers only."""

import os
import stat

import pytest

from pkgrepo.client.profiles import (
    Options,
    Profile,
    Profiles,
    find_profiles_file,
    find_target,
    read_profiles,
    write_profiles,
)
from pkgrepo.errors import Invalid, NotFound

HERE, THERE = "https://here.example", "https://there.example"


@pytest.fixture
def environ(tmp_path):
    """An environment with two profiles; the second one is current."""
    profiles = Profiles()
    profiles.add("one", Profile(url=HERE, username="ann", token="token-one", ca_file="/ca.pem"))
    profiles.add("two", Profile(url=THERE, username="bob", token="token-two"))
    path = tmp_path / "config" / "pkgrepo" / "profiles.json"
    write_profiles(path, profiles)
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def target(environ, **options):
    found = find_target(Options(**options), environ)
    return found.url, found.authorization


def test_only_the_owner_can_read_the_file(environ):
    path = find_profiles_file(environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    os.umask(os.umask(0))
    write_profiles(path, read_profiles(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_others_can_read_is_refused(environ):
    path = find_profiles_file(environ)
    path.chmod(0o640)
    with pytest.raises(Invalid, match="other users can read the tokens"):
        read_profiles(path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"profiles":{"a":{}}}', b"\xff"], ids=["empty", "list", "bare", "bytes"]
)
def test_a_damaged_file_is_one_sentence(tmp_path, content):
    path = tmp_path / "profiles.json"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Invalid, match="is no file of profiles"):
        read_profiles(path)


def test_no_file_is_no_profile(tmp_path):
    assert read_profiles(tmp_path / "none.json") == Profiles()
    with pytest.raises(Invalid, match="no server is known"):
        find_target(Options(), {"PKGREPO_PROFILES": str(tmp_path / "none.json")})


def test_the_current_profile_is_used_unless_another_is_named(environ):
    assert target(environ) == (THERE, "Bearer token-two")
    assert target(environ, profile="one") == (HERE, "Bearer token-one")
    assert target({**environ, "PKGREPO_PROFILE": "one"}) == (HERE, "Bearer token-one")
    assert target({**environ, "PKGREPO_PROFILE": "one"}, profile="two") == (THERE, "Bearer token-two")
    assert find_target(Options(profile="one"), environ).ca_file.as_posix() == "/ca.pem"
    with pytest.raises(NotFound, match="three"):
        target(environ, profile="three")


def test_a_token_of_a_profile_is_not_sent_to_another_server(environ):
    assert target(environ, url="https://other.example") == ("https://other.example", "")
    assert target(environ, url="https://other.example", profile="one") == ("https://other.example", "")
    assert target({**environ, "PKGREPO_URL": "http://there.example"}) == ("http://there.example", "")
    assert target(environ, url=f"{HERE}/") == (HERE, "Bearer token-one")


def test_a_token_comes_from_a_file_or_the_environment_first(environ, tmp_path):
    file = tmp_path / "token"
    file.write_text("from-file\n")
    variables = {**environ, "PKGREPO_TOKEN": "from-variable", "PKGREPO_TOKEN_FILE": str(file)}
    assert target(variables, token_file=file)[1] == "Bearer from-file"
    assert target(variables)[1] == "Bearer from-variable"
    assert target({**environ, "PKGREPO_TOKEN_FILE": str(file)})[1] == "Bearer from-file"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://x", "is no address of a server"),
        ("nonsense", "is no address of a server"),
        ("http://x:99999", "is no address of a server"),
        ("http://x/?q", "is no address of a server"),
        ("http://ann:secret@x", "credentials do not belong into --url"),
        ("http://ann:secret@x:99999", "credentials do not belong into --url"),
    ],
)
def test_wrong_addresses_are_refused_without_their_secrets(environ, url, sentence):
    with pytest.raises(Invalid, match=sentence) as error:
        target(environ, url=url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"two words", b"\xff\xfe", "t\u00f6ken".encode()], ids=["none", "words", "bytes", "ascii"]
)
def test_a_file_without_a_token_is_refused_without_its_content(environ, tmp_path, content):
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(Invalid) as error:
        target(environ, token_file=file)
    assert "words" not in str(error.value)


def test_no_representation_shows_a_token(environ):
    profiles = read_profiles(find_profiles_file(environ))
    assert "token-one" not in repr(profiles)
    assert "token-two" not in repr(find_target(Options(), environ))


def test_removing_the_current_profile_makes_another_one_current(environ):
    profiles = read_profiles(find_profiles_file(environ))
    profiles.remove("two")
    assert profiles.current == "one"
    profiles.remove("one")
    assert profiles == Profiles()
