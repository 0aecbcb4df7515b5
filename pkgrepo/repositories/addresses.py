"""
Host names and path prefixes that stand for repositories.

===========  ============================  ============================================================================
kind         example                       what is there
===========  ============================  ============================================================================
host         ``npm.corp.example``          the repository at the root of the host; of a container repository only its
                                           images at ``/v2/``: all else there is the server's, such as the token service
alias        ``/repository/npm-all/``      the repository below the prefix, on hosts that stand for no repository
image alias  ``/v2/docker-all/``           the images of a container repository whose names begin with what follows
                                           ``/v2/``; a storage and repository of that name come first
===========  ============================  ============================================================================

Only names that are configured count: a request for any other host is for the server. A name whose repository does not
exist serves nothing. Names with a port are of that port, those without one are of every port.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, Self

from attrs import Factory, field, frozen

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.server import settings

SETTING: Final = "repository_addresses"
IMAGES: Final = "/v2/"
MOST: Final = 1000  # hosts, and aliases, of a server
# First segments of the server's own addresses: an alias among them would hide what is there.
OWN: Final = frozenset(
    {
        *("repositories", "ui", "t", "token", "health", "healthz", "readyz", "metrics", "problems", "api", "v2"),
        *("_", "-", ".well-known"),  # exchanges of identity tokens; what standards and clients look for at a host
    }
)
PACKAGES: Final = "/api/packages/"  # where the addresses of Gitea and Forgejo begin; the API has nothing there

_HOST: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*(?::[0-9]{1,5})?")
_PREFIX: Final = re.compile(r"/(?:[A-Za-z0-9._~@-]{1,100}/){1,8}")
_PATH: Final = re.compile(r"[^/\s]{1,100}/[^/\s]{1,100}")


@frozen
class AddressTable:
    """
    The hosts and aliases of a server, each with the path of its repository, as they are written.

    The look-ups are by what a request says: its host in lower case with the port, and its raw path.
    """

    hosts: Mapping[str, str] = Factory(dict)
    aliases: Mapping[str, str] = Factory(dict)
    _prefixes: Mapping[bytes, list[tuple[bytes, str]]] = field(init=False)  # by first segment, the longest first

    @_prefixes.default
    def _index(self) -> Mapping[bytes, list[tuple[bytes, str]]]:
        found: dict[bytes, list[tuple[bytes, str]]] = {}
        for prefix in sorted(self.aliases, key=len, reverse=True):
            found.setdefault(prefix.split("/")[1].encode("ascii"), []).append((prefix.encode("ascii"), prefix))
        return found

    def of_host(self, host: str) -> str | None:
        """The path of the repository that a host stands for, or None."""
        found = self.hosts.get(host)
        if found is None and self.hosts:
            name, colon, port = host.rpartition(":")
            name = (name if colon and port.isdigit() else host).removesuffix(".")
            found = self.hosts.get(f"{name}:{port}") if colon and port.isdigit() else None
            found = found or self.hosts.get(name)
        return found

    def of_path(self, raw_path: bytes) -> tuple[str, str] | None:
        """The alias that a path is at or below, without a slash at the end, and the path of its repository; or None."""
        if not self._prefixes:
            return None
        for prefix, alias in self._prefixes.get(raw_path[1:].partition(b"/")[0], ()):
            if (raw_path.startswith(prefix) or raw_path == prefix[:-1]) and not alias.startswith(IMAGES):
                return alias[:-1], self.aliases[alias]
        return None

    def of_image(self, name: str) -> tuple[str, str] | None:
        """The path of the repository, and the name of the image in there, of a name with an alias; or None."""
        for _, alias in self._prefixes.get(b"v2", ()):
            prefix = alias.removeprefix(IMAGES)
            if name.startswith(prefix):
                return self.aliases[alias], name.removeprefix(prefix)
        return None

    def joined(self, other: AddressTable) -> AddressTable:
        """Both tables; of one name that both have, that of the other one counts."""
        return AddressTable({**self.hosts, **other.hosts}, {**self.aliases, **other.aliases})

    @classmethod
    def checked(cls, hosts: Mapping[str, str], aliases: Mapping[str, str]) -> Self:
        """
        The table with names in their usual spelling.

        :raises Invalid: a name cannot be used; its pointer is ``/hosts/NAME`` or ``/aliases/NAME``
        """
        return cls(_each("hosts", hosts, check_host), _each("aliases", aliases, check_alias))

    def names_of(self, path: str) -> tuple[list[str], list[str]]:
        """The hosts and the aliases of a repository, sorted."""
        return _names_of(self.hosts, path), _names_of(self.aliases, path)


def check_host(name: str) -> str:
    """A host in lower case, with its port if it has one. :raises Invalid: it cannot be used"""
    found = name.lower()
    if not _HOST.fullmatch(found) or len(found) > 255:
        raise Invalid(f'{name!r} is no host name such as "npm.corp.example" or "nexus.corp.example:8082"')
    if int(found.partition(":")[2] or 0) > 65_535:
        raise Invalid(f"{name!r} has a port above 65535")
    return found


def check_alias(prefix: str) -> str:
    """A path prefix with a slash at both ends. :raises Invalid: it cannot be used"""
    found = prefix if prefix.endswith("/") else f"{prefix}/"
    segments = found.split("/")[1:-1]
    if not _PREFIX.fullmatch(found) or not {".", ".."}.isdisjoint(segments):
        raise Invalid(f'{prefix!r} is no path such as "/repository/npm-all/"')
    if found.startswith(PACKAGES) and len(segments) >= 4:
        return found
    if segments[0] in OWN and not (found.startswith(IMAGES) and len(segments) >= 2):
        raise Invalid(f"{prefix!r} would hide addresses of the server, which begin with /{segments[0]}/")
    return found


def pointer(kind: str, name: str) -> str:
    """The pointer of a name in a document with the tables (RFC 6901 section 3)."""
    return f"/{kind}/{name.replace('~', '~0').replace('/', '~1')}"


def _names_of(table: Mapping[str, str], path: str) -> list[str]:
    wanted = path.casefold()
    return sorted(name for name, each in table.items() if each.casefold() == wanted)


def _each(kind: str, given: Mapping[str, str], check: Callable[[str], str]) -> dict[str, str]:
    if len(given) > MOST:
        raise Invalid(f"there are more than {MOST} {kind}", f"/{kind}")
    found: dict[str, str] = {}
    for name, path in given.items():
        at = pointer(kind, name)
        try:
            spelt = check(name)
        except Invalid as error:
            raise Invalid(str(error), at) from None
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise Invalid(f"{name}: {path!r} is no repository as storage/name", at)
        if spelt in found:
            raise Invalid(f"{spelt} is there twice", at)
        found[spelt] = path
    return found


def stored_addresses(reader: Reader) -> AddressTable:
    """The table that was set by the API."""
    text = settings.get(reader, SETTING)
    if text is None:
        return AddressTable()
    found = json.loads(text)
    return AddressTable(found["hosts"], found["aliases"])


def store_addresses(tx: Transaction, table: AddressTable) -> None:
    """Write command: replace the table that was set by the API, which every process reads again."""
    settings.put(tx, SETTING, json.dumps({"hosts": dict(table.hosts), "aliases": dict(table.aliases)}))
    settings.bump_config_serial(tx)
