"""
Tokens that end within hours, made with the token of a profile: what programs ask for again and again.

The latest one of each profile is kept in ``short-lived.json`` beside the profiles, which only its owner can read, until
it is about to end. A token from the environment, ``PKGREPO_TOKEN``, is handed out itself, and kept nowhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from pkgrepo.client.locks import locked
from pkgrepo.client.profiles import Profile, Profiles, find_profiles_file, read_profiles
from pkgrepo.errors import PkgrepoError
from pkgrepo.small_files import replace_private_json

LIFETIME: Final = timedelta(hours=12)
LEFT: Final = timedelta(hours=2)  # of a token that is still handed out: a long build
RENEWAL_S: Final = 60.0
LOCK_S: Final = 10.0  # a file is read and written under it
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class NotLent(PkgrepoError):  # noqa: N818 - named for what happened
    """The server has made no token, or was not reached."""


class Lent(msgspec.Struct, kw_only=True):
    """A token for programs: ``id`` is that in the API, empty for one of the environment; None never ends."""

    username: str
    token: str
    id: str = ""
    made_by: str = ""  # the id of the token of the profile
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Lent({self.username!r})"

    def is_live(self, now: datetime) -> bool:
        """Whether it lasts for long enough."""
        return self.expires_at is None or self.expires_at - now > LEFT


def lend(address: str, environ: Mapping[str, str]) -> Lent | None:
    """
    A token for an address on a server, or for its host and port; None if there is no profile for it. Blocks.

    :raises NotLent: it cannot be made; :raises Invalid: a file is damaged; :raises OSError: a file cannot be read
    """
    given = environ.get("PKGREPO_URL", "")
    if given and environ.get("PKGREPO_TOKEN") and is_at(address, given):
        return Lent(username="token", token=environ["PKGREPO_TOKEN"])
    found = find_profile(address, read_profiles(find_profiles_file(environ)), environ)
    if found is None:
        return None
    name, profile = found
    kept = _kept(name, profile, environ)
    if kept is None:
        _renew(name, environ)
        kept = _kept(name, profile, environ)
    if kept is None:
        raise NotLent(f"no token was made for the profile {name}")
    return kept


def find_profile(address: str, profiles: Profiles, environ: Mapping[str, str]) -> tuple[str, Profile] | None:
    """The profile of the server that an address is on, the chosen or current one first, and the one with a token."""
    chosen = environ.get("PKGREPO_PROFILE", "") or profiles.current
    for name in sorted(profiles.profiles, key=lambda each: each != chosen):
        profile = profiles.profiles[name]
        if profile.token and is_at(address, profile.url):
            return name, profile
    return None


def is_at(address: str, server: str) -> bool:
    """
    Whether an address, with or without a scheme, is that of the server or below it.

    A token is for one server only: scheme, host and port must be the same, and the path below that of the server.
    """
    wanted = urlsplit(server)
    bare = "://" not in address
    found = urlsplit(f"{wanted.scheme}://{address}" if bare else address)
    try:
        same_host = (found.hostname, _port(found.scheme, found.port)) == (
            wanted.hostname,
            _port(wanted.scheme, wanted.port),
        )
    except ValueError:
        return False
    if not same_host or found.scheme != wanted.scheme:
        return False
    if {".", ".."} & set(unquote(found.path).replace("\\", "/").split("/")):  # which clients resolve
        return False
    path = wanted.path.rstrip("/")
    # a host alone stands for all that is there, as container clients and keyring ask
    return found.path.rstrip("/") in ("", path) or found.path.startswith(f"{path}/")


def lent_file(environ: Mapping[str, str]) -> Path:
    """Where the tokens are kept, whether the file exists or not."""
    return find_profiles_file(environ).with_name("short-lived.json")


def read_lent(path: Path) -> dict[str, Lent]:
    """The tokens by the names of profiles. A damaged file has none: they are made anew."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Lent])
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def keep_lent(path: Path, name: str, lent: Lent | None) -> Lent | None:
    """
    Keep a token of a profile, or none. Return the one that was there. Blocks while another program does so.

    :raises Conflict: another one does so for too long; :raises OSError: the file cannot be written
    """
    with locked(path, f"another program has locked {path}", wait_s=LOCK_S):
        found = read_lent(path)
        before = found.pop(name, None)
        if lent is not None:
            found[name] = lent
        if before is not None or lent is not None:
            replace_private_json(path, found)
    return before


def _kept(name: str, profile: Profile, environ: Mapping[str, str]) -> Lent | None:
    found = read_lent(lent_file(environ)).get(name)
    if found is None or found.made_by != profile.token_id or found.username != profile.username:
        return None
    return found if found.is_live(datetime.now(UTC)) else None


def _renew(name: str, environ: Mapping[str, str]) -> None:
    """Have a process of its own make a token. :raises NotLent: it made none"""
    command = [sys.executable, "-m", "pkgrepo.client.credentials.renewal", name]
    # what the environment says of another server does not count for this profile
    hidden = ("PKGREPO_TOKEN", "PKGREPO_TOKEN_FILE", "PKGREPO_URL", "PKGREPO_PROFILE")
    kept = {key: value for key, value in {**os.environ, **environ}.items() if key not in hidden}
    try:
        done = subprocess.run(  # noqa: S603 - this very program
            command, env=kept, stdin=subprocess.DEVNULL, capture_output=True, timeout=RENEWAL_S, check=False
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        raise NotLent(f"no token could be made: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().removeprefix("pkgrepo: ")
        raise NotLent(said.splitlines()[-1] if said else "no token could be made")


def _port(scheme: str, port: int | None) -> int | None:
    return _DEFAULT_PORTS.get(scheme) if port is None else port
