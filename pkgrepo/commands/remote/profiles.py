"""
The file of profiles: for each server its address, and the token that ``pkgrepo login`` got.

It is ``profiles.json`` in the folder ``pkgrepo`` of the user's configuration folder (``XDG_CONFIG_HOME``, or
``~/.config``), or the file that ``PKGREPO_PROFILES`` names, and only its owner can read it (mode 0600).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.storage.durable_file import replace_file
from pkgrepo.storage.private_files import OWNER_ONLY

DEFAULT: Final = "default"  # the name of the profile that the first login makes


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
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise Invalid(f"other users can read the tokens in {path}: chmod 600 {path}")
    try:
        return msgspec.json.decode(data, type=Profiles)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Invalid(f"{path} is no file of profiles; remove it, and log in again") from None


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file. :raises OSError: it cannot be written, and is unchanged"""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, msgspec.json.format(msgspec.json.encode(profiles)) + b"\n", OWNER_ONLY)
