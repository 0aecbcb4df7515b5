"""What helpers of docker, cargo and keyring say; tokens are kept ones, so that no server is asked."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from pkgrepo.client.credentials import cargo, docker, lending, renewal
from pkgrepo.client.credentials.keyring_backend import PkgrepoKeyring
from pkgrepo.client.credentials.lending import Lent, is_at, keep_lent, lend, lent_file, read_lent
from pkgrepo.client.locks import locked
from pkgrepo.client.profiles import Profile, Profiles, find_profiles_file, write_profiles
from pkgrepo.errors import Conflict, Invalid, NotFound
from tests.support.timeouts import TIMEOUT_S

if TYPE_CHECKING:
    from pkgrepo.client.api import Client

SERVER = "https://packages.example/base"
END = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """An environment with one profile, for which a token is kept."""
    found = {"PKGREPO_PROFILES": str(tmp_path / "profiles.json")}
    for name in ("PKGREPO_URL", "PKGREPO_TOKEN", "PKGREPO_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PKGREPO_PROFILES", found["PKGREPO_PROFILES"])
    profile = Profile(url=SERVER, username="ann", token="long-lived", token_id="1")
    write_profiles(find_profiles_file(found), Profiles(current="work", profiles={"work": profile}))
    keep_lent(lent_file(found), "work", Lent(username="ann", token="short", id="2", made_by="1", expires_at=END))
    return found


@pytest.mark.parametrize(
    ("address", "server", "expected"),
    [
        ("packages.example", SERVER, True),
        ("packages.example:443", SERVER, True),
        ("https://packages.example", SERVER, True),
        ("https://__token__@packages.example/base/repositories/main/py/simple/", SERVER, True),
        ("https://packages.example/based/x", SERVER, False),
        ("https://packages.example/other", SERVER, False),
        ("https://packages.example/base/../other", SERVER, False),
        ("https://packages.example/base/%2E%2e/other", SERVER, False),
        ("https://packages.example/base/x%5C..%5C..%5Cother", SERVER, False),
        ("https://packages.example/base/..x/y", SERVER, True),
        ("http://packages.example/base", SERVER, False),
        ("https://packages.example:8443/base", SERVER, False),
        ("https://packages.example.evil/base", SERVER, False),
        ("https://evil.example/@packages.example/base", SERVER, False),
        ("127.0.0.1:8081", "http://127.0.0.1:8081", True),
        ("127.0.0.1:8082", "http://127.0.0.1:8081", False),
        ("127.0.0.1:port", "http://127.0.0.1:8081", False),
    ],
)
def test_a_token_is_for_its_server_alone(address: str, server: str, expected: bool) -> None:
    assert is_at(address, server) is expected


def test_docker_gets_a_short_lived_token_and_never_that_of_the_profile(environ: Mapping[str, str]) -> None:
    said = json.loads(docker.answer(["get"], io.BytesIO(b"packages.example\n"), environ))
    assert said == {"ServerURL": "packages.example", "Username": "ann", "Secret": "short"}
    assert json.loads(docker.answer(["list"], io.BytesIO(), environ)) == {SERVER: "ann"}
    with pytest.raises(NotFound):
        docker.answer(["get"], io.BytesIO(b"other.example"), environ)
    with pytest.raises(Invalid):
        docker.answer(["guess"], io.BytesIO(), environ)


def test_docker_may_store_what_it_was_given_and_nothing_else(environ: Mapping[str, str]) -> None:
    given = {"ServerURL": "packages.example", "Username": "ann", "Secret": "short"}
    assert docker.answer(["store"], io.BytesIO(json.dumps(given).encode()), environ) == ""
    for other in ({**given, "Secret": "mine"}, {**given, "ServerURL": "other.example"}, "x"):
        with pytest.raises(Invalid):
            docker.answer(["store"], io.BytesIO(json.dumps(other).encode()), environ)
    docker.answer(["erase"], io.BytesIO(b"packages.example"), environ)
    assert read_lent(lent_file(environ)) == {}


def test_cargo_gets_a_token_until_it_ends(environ: Mapping[str, str]) -> None:
    index = f"sparse+{SERVER}/repositories/main/crates/index/"
    asked = [
        {"v": 1, "kind": "get", "operation": "read", "registry": {"index-url": index}},
        {"v": 1, "kind": "get", "operation": "read", "registry": {"index-url": "sparse+https://other.example/"}},
        {"v": 1, "kind": "login", "registry": {"index-url": index}},
        {"v": 2, "kind": "get", "registry": {"index-url": index}},
        {"v": 1},
    ]
    out = io.BytesIO()
    cargo.serve(io.BytesIO("\n".join(map(json.dumps, asked)).encode()), out, environ)
    hello, found, *refused = map(json.loads, out.getvalue().splitlines())
    assert hello == {"v": [1]}
    ends = {"cache": "expires", "expiration": int(END.timestamp())}
    assert found == {"Ok": {"kind": "get", "token": "short", "operation_independent": True, **ends}}
    kinds = [each["Err"]["kind"] for each in refused]
    assert kinds == ["url-not-supported", "operation-not-supported", "operation-not-supported", "other"]


@pytest.mark.usefixtures("environ")
def test_keyring_answers_for_addresses_of_the_server() -> None:
    keyring, index = PkgrepoKeyring(), f"{SERVER}/repositories/main/py/simple/"
    assert keyring.get_password(index, "__token__") == "short"
    assert keyring.get_password("packages.example", "ann") == "short"
    assert keyring.get_password(index, "bob") is None
    assert keyring.get_password("https://other.example/simple/", "__token__") is None
    assert keyring.get_password("desktop", "ann") is None
    found = keyring.get_credential(index, None)
    assert (found.username, found.password) == ("__token__", "short")
    with pytest.raises(NotImplementedError):
        keyring.set_password(index, "__token__", "x")


def test_a_token_that_is_about_to_end_or_of_another_login_is_made_anew(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = lent_file(environ), []

    def renew(name: str, _environ: Mapping[str, str]) -> None:
        made.append(name)
        keep_lent(path, name, Lent(username="ann", token=f"new-{len(made)}", id="3", made_by="1", expires_at=END))

    monkeypatch.setattr(lending, "_renew", renew)
    soon = datetime.now(UTC) + timedelta(hours=1)
    for kept in (
        Lent(username="ann", token="old", id="2", made_by="1", expires_at=soon),
        Lent(username="ann", token="old", id="2", made_by="of another login", expires_at=END),
    ):
        keep_lent(path, "work", kept)
        found = lend(SERVER, environ)
        assert found is not None
        assert found.token == f"new-{len(made)}"
    path.write_text("damaged")
    assert lend(SERVER, environ) is not None
    assert made == ["work"] * 3


def test_a_token_that_cannot_be_kept_is_revoked(environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    revoked: list[str] = []

    async def make(*_: object) -> Lent:
        return Lent(username="ann", token="new", id="3", made_by="1", expires_at=END)

    async def revoke(_client: object, id: str) -> None:
        revoked.append(id)

    monkeypatch.setattr(renewal, "make_short_lived", make)
    monkeypatch.setattr(renewal, "revoke", revoke)
    monkeypatch.setattr(lending, "LOCK_S", 0.0)
    client, profile = cast("Client", None), Profile(url=SERVER, token_id="1")
    with locked(lent_file(environ), "held"), pytest.raises(Conflict, match="another program has locked"):
        asyncio.run(renewal.renew(client, "work", profile))
    assert revoked == ["3"]
    assert read_lent(lent_file(environ))["work"].token == "short"
    asyncio.run(renewal.renew(client, "work", profile))  # the one of before, of the same login, may be in use
    assert (read_lent(lent_file(environ))["work"].token, revoked) == ("new", ["3"])


def test_a_token_of_the_environment_is_for_its_own_address(environ: Mapping[str, str]) -> None:
    given = {**environ, "PKGREPO_URL": "https://ci.example", "PKGREPO_TOKEN": "of the job"}
    found = lend("https://ci.example/repositories/main/py/simple/", given)
    assert found is not None
    assert found.token == "of the job"
    kept = lend(SERVER, given)
    assert kept is not None
    assert kept.token == "short"
    assert "of the job" not in lent_file(environ).read_text()


def test_tokens_are_for_their_owner_only_and_not_in_messages(environ: Mapping[str, str]) -> None:
    assert lent_file(environ).stat().st_mode & 0o077 == 0
    assert "short" not in repr(read_lent(lent_file(environ)))


KEEP = """
import sys, time
from pathlib import Path
from pkgrepo.client.credentials import lending
read = lending.read_lent
def read_slowly(path):
    found = read(path)
    time.sleep(0.02)  # in which others would write
    return found
lending.read_lent = read_slowly
for number in range(10):
    lending.keep_lent(Path(sys.argv[1]), f"{sys.argv[2]}-{number}", lending.Lent(username="ann", token="x"))
"""


def test_programs_that_keep_tokens_at_the_same_time_lose_none(environ: Mapping[str, str]) -> None:
    path = lent_file(environ)
    command = [sys.executable, "-c", KEEP, str(path)]
    programs = [subprocess.Popen([*command, f"p{number}"]) for number in range(4)]
    assert [each.wait(TIMEOUT_S) for each in programs] == [0] * 4
    assert len(read_lent(path)) == 41  # and the one of before
    assert path.stat().st_mode & 0o077 == 0
