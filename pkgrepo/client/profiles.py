"""
The file of profiles: for each server its address, and the token that ``pkgrepo login`` got.

It is ``profiles.json`` in the folder ``pkgrepo`` of the user's configuration folder (``XDG_CONFIG_HOME``, or
``~/.config``), or the file that ``PKGREPO_PROFILES`` names, and only its owner can read it (mode 0600).

=========  ==================================================================================================
of a call  first that is given
=========  ==================================================================================================
address    ``--url``, ``PKGREPO_URL``, the profile
profile    ``--profile``, ``PKGREPO_PROFILE``, the current one
token      ``--token-file``, ``PKGREPO_TOKEN``, ``PKGREPO_TOKEN_FILE``, the profile of this address, none
=========  ==================================================================================================

The token of a profile is sent only to the address of that profile. No option takes a token, because other users can
see the arguments of a program.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from attrs import field, frozen

from pkgrepo.client.http import check_token, parse_address, read_token
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.small_files import replace_private_json

DEFAULT: Final = "default"  # the name of the profile that the first login makes

SERVER = "a server such as https://packages.example"


class Profile(msgspec.Struct, kw_only=True, omit_defaults=True):
    """
    A server and how to log in there; without a token, requests are anonymous.

    ``token_id`` is that of the token in the API, with which it is revoked.
    """

    url: str
    username: str = ""
    token: str = ""
    token_id: str = ""
    ca_file: str = ""

    def __repr__(self) -> str:
        return f"Profile({self.url!r})"


class Profiles(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All profiles by name; ``current`` is the name of the one that is used."""

    current: str = ""
    profiles: dict[str, Profile] = {}

    def get(self, name: str) -> Profile:
        """The profile of this name. :raises NotFound: there is none"""
        if name not in self.profiles:
            raise NotFound("profile", name)
        return self.profiles[name]

    def find_by_url(self, url: str) -> Profile | None:
        """The profile of a server, the current one first."""
        names = sorted(self.profiles, key=lambda name: name != self.current)
        return next((self.profiles[name] for name in names if self.profiles[name].url == url), None)

    def add(self, name: str, profile: Profile) -> None:
        """Add or replace a profile, which becomes the current one."""
        self.profiles[name] = profile
        self.current = name

    def remove(self, name: str) -> None:
        """Remove a profile; if it was the current one, the first of the others is current then."""
        del self.profiles[name]
        if self.current == name:
            self.current = next(iter(sorted(self.profiles)), "")


def find_profiles_file(environ: Mapping[str, str]) -> Path:
    """Where the profiles are, whether the file exists or not."""
    if environ.get("PKGREPO_PROFILES"):
        return Path(environ["PKGREPO_PROFILES"])
    folder = environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if folder.startswith("/") else Path.home() / ".config"  # relative ones are to be ignored
    return base / "pkgrepo" / "profiles.json"


def read_profiles(path: Path) -> Profiles:
    """
    The profiles in the file; none if there is no file.

    :raises Invalid: it is damaged, or others than its owner can read it; :raises OSError: it cannot be read
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        return Profiles()
    if os.name != "nt" and stat.S_IMODE(found.st_mode) & 0o077:  # Windows has no such bits: folders of users are theirs
        raise Invalid(f"other users can read the tokens in {path}: chmod 600 {path}")
    try:
        return msgspec.json.decode(data, type=Profiles)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Invalid(f"{path} is no file of profiles; remove it, and log in again") from None


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file. :raises OSError: it cannot be written, and is unchanged"""
    replace_private_json(path, profiles)


@frozen
class Options:
    """What the command line says about the server; empty where it says nothing."""

    profile: str = ""
    url: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None


@frozen
class Target:
    """A server; ``authorization`` is the value of that header field, empty for anonymous requests."""

    url: str
    authorization: str = field(default="", repr=False)
    ca_file: Path | None = None


def find_target(options: Options, environ: Mapping[str, str]) -> Target:
    """
    The server and the credentials of a command.

    :raises Invalid: there is no address, or something cannot be used; :raises NotFound: there is no such profile
    :raises OSError: a file cannot be read
    """
    profiles = read_profiles(find_profiles_file(environ))
    url = options.url or ("" if options.profile else environ.get("PKGREPO_URL", ""))
    name = options.profile or environ.get("PKGREPO_PROFILE", "")
    profile: Profile | None
    if url:
        url = parse_address(url, SERVER, "--url")
        named = profiles.get(name) if name else None
        profile = named if named is not None and named.url == url else profiles.find_by_url(url)
    elif name or profiles.current:
        profile = profiles.get(name or profiles.current)
        url = profile.url
    else:
        raise Invalid('no server is known: "pkgrepo login URL" makes a profile, or use --url')
    ca_file = options.ca_file or environ.get("PKGREPO_CA_FILE") or (profile.ca_file if profile else "")
    token = _token(options, environ) or (profile.token if profile else "")
    return Target(url, f"Bearer {token}" if token else "", Path(ca_file) if ca_file else None)


def _token(options: Options, environ: Mapping[str, str]) -> str:
    if options.token_file is not None:
        return read_token(options.token_file)
    if environ.get("PKGREPO_TOKEN"):
        return check_token(environ["PKGREPO_TOKEN"], "PKGREPO_TOKEN")
    if environ.get("PKGREPO_TOKEN_FILE"):
        return read_token(Path(environ["PKGREPO_TOKEN_FILE"]))
    return ""
