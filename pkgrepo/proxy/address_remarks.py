"""Remarks on the address of an upstream that may not be what was meant: hints, not refusals, for people."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen

LOCAL: Final = ("localhost", ".localhost", ".internal", ".local")


@frozen
class AddressShape:
    """
    How addresses of repositories of a format look.

    ``endings`` are what their paths end with in most cases, without slashes, the usual one first; none where they end
    with anything. ``below`` are parts of paths that are not the address itself, but of something in the repository.
    """

    endings: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def remarks_on(shape: AddressShape, url: str) -> Iterator[str]:
    """What is unusual about an address that is a valid URL, as sentences without a full stop."""
    parts = urlsplit(url)
    host, path = parts.hostname or "", parts.path
    if parts.scheme == "http" and not _is_near(host):
        yield "It begins with http://: others on the way can change what is fetched; use https:// if it is there"
    if host.startswith("www."):
        yield f"{host} may be a web site for people: the registry itself is often at another host"
    found = next((each for each in shape.below if each in f"{path}/"), None)
    if found is not None:
        yield f"It goes on below the address of a repository: leave out {found.strip('/')} and what follows"
    elif shape.endings and path.rstrip("/").rpartition("/")[2].lower() not in shape.endings:
        yield f"Addresses of such an index end with /{shape.endings[0]}/ in most cases"


def _is_near(host: str) -> bool:
    """Whether a host is of this machine or of a private network, as far as its name says so."""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(LOCAL)
