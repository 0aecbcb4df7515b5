"""
The server that a command talks to, and the token for it.

=========  ==================================================================================================
what       first that is given
=========  ==================================================================================================
address    ``--url``, ``PKGREPO_URL``, the profile
profile    ``--profile``, ``PKGREPO_PROFILE``, the current one
token      ``--token-file``, ``PKGREPO_TOKEN``, ``PKGREPO_TOKEN_FILE``, the profile of this address, none
=========  ==================================================================================================

The token of a profile is sent only to the address of that profile. No option takes a token, because other users can
see the arguments of a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from pkgrepo.commands.http.addresses import parse_address
from pkgrepo.commands.http.tokens import check_token, read_token
from pkgrepo.errors import Invalid

from .profiles import Profile, find_profiles_file, read_profiles

SERVER = "a server such as https://packages.example"


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
