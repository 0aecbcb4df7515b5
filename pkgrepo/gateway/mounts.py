"""From the raw path of a request to the repository that serves it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from attrs import frozen
from twisted.web.resource import IResource

from pkgrepo.interfaces import IFormat
from pkgrepo.model import Repository

from .services import Services

PREFIX = b"/repositories/"


def below(raw_path: bytes) -> bytes:
    """The path below its repository, as on the wire and without the slash before it; of a mounted request only."""
    return raw_path[len(PREFIX) :].split(b"/", 2)[2] if raw_path.count(b"/") > 3 else b""


@frozen
class Mount:
    """A repository with the resource of its format, which lives as long as the configuration does not change."""

    repository: Repository
    format: IFormat
    resource: IResource


class Mounts:
    """Finds the mount behind ``/repositories/<storage>/<repository>/...``."""

    def __init__(self, *, services: Services, formats: Mapping[str, IFormat]) -> None:
        self._services = services
        self._registry = services.registry
        self._formats = formats
        self._serial = -1
        self._mounts: dict[tuple[bytes, bytes], Mount] = {}

    def find(self, raw_path: bytes) -> tuple[Mount, bytes] | None:
        """The mount and the rest of the path as on the wire, without the slash before it; None when there is none."""
        if not raw_path.startswith(PREFIX):
            return None
        parts = raw_path[len(PREFIX) :].split(b"/", 2)
        if len(parts) < 2:
            return None
        mount = self._find(parts[0], parts[1])
        if mount is None:
            return None
        return mount, parts[2] if len(parts) > 2 else b""

    def _find(self, storage: bytes, name: bytes) -> Mount | None:
        if self._registry.serial != self._serial:
            self._serial = self._registry.serial
            self._mounts = {}
        mount = self._mounts.get((storage, name))
        if mount is not None:
            return mount
        repository = self._registry.find(unquote(storage.decode("latin-1")), unquote(name.decode("latin-1")))
        if repository is None:
            return None
        # Kept under the repository's own spelling only: of others anybody can make up as many as they like.
        key = (repository.storage_name.encode("utf-8"), repository.name.encode("utf-8"))
        mount = self._mounts.get(key) or self._mount(repository)
        if mount is not None:
            self._mounts[key] = mount
        return mount

    def _mount(self, repository: Repository) -> Mount | None:
        format_ = self._formats.get(repository.format)
        if format_ is None:
            return None
        return Mount(repository=repository, format=format_, resource=format_.resource(repository, self._services))
