"""
``docker-credential-pkgrepo``: a credential helper of docker, podman, skopeo, helm and others.

The program is called with ``get``, ``store``, ``erase`` or ``list``, reads a server or JSON from its standard input,
and writes JSON, or an error, to its standard output. ``pkgrepo login`` decides whose credentials they are: ``store``
accepts the ones that were handed out, and no others, and ``erase`` forgets the short-lived token only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import IO, Any, Final

import msgspec

from pkgrepo.client.credentials.lending import find_profile, keep_lent, lend, lent_file
from pkgrepo.client.profiles import find_profiles_file, read_profiles
from pkgrepo.errors import Invalid, NotFound, PkgrepoError

MISSING: Final = "credentials not found in native keychain"  # by these words clients know that there are none
_LOGIN: Final = 'pkgrepo keeps no other credentials: "pkgrepo login" decides whose they are'
_MOST: Final = 64 * 1024  # bytes of a request


def main() -> None:
    """Answer one request, and end the program."""
    try:
        print(answer(sys.argv[1:], sys.stdin.buffer, os.environ), end="")  # noqa: T201 - the protocol
    except NotFound:
        print(MISSING)  # noqa: T201
        sys.exit(1)
    except (PkgrepoError, OSError) as error:
        print(str(error))  # noqa: T201
        sys.exit(1)


def answer(arguments: list[str], told: IO[bytes], environ: Mapping[str, str]) -> str:
    """
    What is printed for a request.

    :raises NotFound: there is no profile for the server; :raises PkgrepoError: it is refused, or fails
    """
    if arguments == ["list"]:
        profiles = read_profiles(find_profiles_file(environ)).profiles.values()
        return _json({each.url: each.username for each in profiles if each.token})
    if arguments not in (["get"], ["store"], ["erase"]):
        raise Invalid("usage: docker-credential-pkgrepo get|store|erase|list")
    text = told.read(_MOST).decode("utf-8", "replace").strip()
    if arguments == ["get"]:
        lent = lend(text, environ)
        if lent is None:
            raise NotFound("profile", text)
        return _json({"ServerURL": text, "Username": lent.username, "Secret": lent.token})
    if arguments == ["store"]:
        return _store(text, environ)
    found = find_profile(text, read_profiles(find_profiles_file(environ)), environ)
    if found is not None:
        keep_lent(lent_file(environ), found[0], None)
    return ""


def _store(text: str, environ: Mapping[str, str]) -> str:
    try:
        given = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.DecodeError:
        raise Invalid("these are no credentials") from None
    lent = lend(given.get("ServerURL", ""), environ)
    if lent is None or given.get("Secret") != lent.token:
        raise Invalid(_LOGIN)
    return ""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() + "\n"
