"""Starts imports as jobs: finds the source, checks that it may be read, and lets the engine take it in."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from attrs import define, evolve

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import Forbidden, Invalid, RepositoryInactive
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.described import WithLeftOut
from pkgrepo.gateway.imported.engine import Import, Order, Tools
from pkgrepo.gateway.imported.items import Source
from pkgrepo.gateway.imported.places import Folder, Site
from pkgrepo.importing.bundles import open_bundle
from pkgrepo.importing.kinds import Kind, find_kind, make_kinds
from pkgrepo.model import Actor, Repository, RepositoryType
from pkgrepo.outbound.urls import Target, UserInfoError, parse_url
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Credentials, Route
from pkgrepo.repositories.format import load_formats
from pkgrepo.repositories.upkeep.imports import KIND, ImportRequest, SourceKind
from pkgrepo.repositories.upkeep.jobs import Jobs, Progress


@define(eq=False, kw_only=True)
class Importers:
    """
    Starts imports; see L{pkgrepo.repositories.upkeep.imports.StartsImports}.

    ``upstreams`` makes the clients of one import, whose requests have the given Authorization field. ``folders`` are
    those that may be read, with what is below them; None: every folder that this process can read. ``keys`` are files
    with the keys (PEM) of which one has to have signed a bundle, where a request has none.
    """

    _tools: Tools
    _jobs: Jobs
    _formats: Mapping[str, Format]
    _upstreams: Callable[[str | None], Upstreams]
    _folders: Sequence[Path] | None
    _keys: Sequence[Path]
    _reactor: Any

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        return make_kinds(self._formats)

    @property
    def kinds(self) -> Sequence[SourceKind]:
        """The kinds of sources, by their names."""
        return [
            SourceKind(
                name=name,
                about=each.about,
                one_repository=each.one_repository,
                addresses=sorted(each.addresses),
                folders=sorted({*each.folders, *each.files}),
            )
            for name, each in sorted(self._kinds.items())
        ]

    async def __call__(self, repository: Repository, request: ImportRequest, actor: Actor) -> str:
        """Start an import as a job. Returns its id."""
        order = await self._order(repository, request, actor)
        data = {
            "on": f"{order.place} into {repository.path}",
            "repository": repository.uid,
            "by": actor.name,
            "kind": request.kind,
            "source": order.place,
            "dry_run": request.dry_run,
            "only": list(request.only),
        }
        return await self._jobs.begin(KIND, repository.uid, data, partial(self._run, request, order))

    async def run(
        self, repository: Repository, request: ImportRequest, actor: Actor, progress: Progress
    ) -> Mapping[str, Any]:
        """Run an import in this process, which is no job; the same is raised as by a start, and by the engine."""
        return await self._run(request, await self._order(repository, request, actor), progress)

    async def _order(self, repository: Repository, request: ImportRequest, actor: Actor) -> Order:
        """What the engine is to do. :raises Invalid, Forbidden, RepositoryInactive: see above"""
        if (
            repository.type is not RepositoryType.HOSTED
            or repository.parent is not None
            or repository.stage is not None
        ):
            raise Invalid(f"{repository.path} is no hosted repository", "/into")
        if not repository.active:
            raise RepositoryInactive(repository.path)
        await load_formats(self._formats.values(), self._tools.pools.cpu)  # each says what it is taken in from
        kind = find_kind(self._kinds, request.kind, repository.format)
        if kind.one_repository and len(request.repositories) != 1:
            raise Invalid(f"name {kind.one_repository} (repositories, or --repository)", "/repositories")
        return Order(
            kind=request.kind,
            place=await self._place(kind, request, repository.format),
            repository=repository,
            actor=admit_server(Road.IMPORT, repository, actor),
            only=request.only,
            dry_run=request.dry_run,
            again=request.again,
        )

    async def _place(self, kind: Kind, request: ImportRequest, format_name: str) -> str:
        """The address or the folder of the source. :raises Invalid, Forbidden: see above"""
        if request.is_remote:
            if format_name not in kind.addresses:
                raise Invalid(f"a source of kind {request.kind} is a folder", "/source")
            return _parse(request.source).text
        if format_name not in (*kind.folders, *kind.files):
            raise Invalid(f"a source of kind {request.kind} is an address (http or https)", "/source")
        if not os.path.isabs(request.source):
            raise Invalid("the source is an address (http or https), or the absolute path of a folder", "/source")
        return await self._tools.pools.disk(self._check_folder, request.source, is_file=bool(kind.files))

    def _check_folder(self, source: str, *, is_file: bool) -> str:
        """The folder or the file, without symbolic links on the way to it."""
        folder = os.path.realpath(source)
        if self._folders is not None and not any(_is_in(folder, os.path.realpath(each)) for each in self._folders):
            # also of folders that do not exist: whether they do is not to be learned here
            raise Forbidden(
                "the server reads no such folder: imports.folders lists those from which it may import; or run "
                "'pkgrepo import' on the machine of the server"
            )
        if not (os.path.isfile(folder) if is_file else os.path.isdir(folder)):
            raise Invalid(f"the source is no {'file' if is_file else 'folder'}", "/source")
        return folder

    async def _run(self, request: ImportRequest, order: Order, progress: Progress) -> Mapping[str, Any]:
        """The work of the job."""
        format_name = order.repository.format
        kind = find_kind(self._kinds, request.kind, format_name)
        if kind.files:
            keys = request.keys or await self._tools.pools.disk(self._read_keys)
            request = evolve(request, keys=keys)
            source = await open_bundle(order.place, self._formats[format_name], request, self._tools.pools, progress)
            return await self._take(source, order, progress)
        if not request.is_remote:
            folder = Folder(order.place, self._tools.pools)
            source = await self._tools.pools.disk(kind.folders[format_name], folder, request)
            return await self._take(source, order, progress, folder)
        route, authorization = _route(request)
        upstreams = self._upstreams(authorization)
        try:
            tools = self._tools
            site = Site(
                upstreams, order.repository.id, route, tools.pools, reactor=self._reactor, largest=tools.max_upload
            )
            return await self._take(kind.addresses[format_name](site, request), order, progress)
        finally:
            await upstreams.close()

    def _read_keys(self) -> list[str]:
        """The keys of the settings. :raises Invalid: one cannot be read"""
        try:
            return [each.read_text("ascii") for each in self._keys]
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid(f"a key of imports.keys cannot be read: {error}") from None

    async def _take(
        self, source: Source, order: Order, progress: Progress, folder: Folder | None = None
    ) -> Mapping[str, Any]:
        format_ = self._formats[order.repository.format]
        taker = format_.imported.taker(self._tools, order, source, format_)
        whole = source if folder is None else WithLeftOut(source, folder)
        return await Import(self._tools, order, whole, taker).run(progress)


def _parse(url: str) -> Target:
    """:raises Invalid: the address of the source cannot be used"""
    try:
        target = parse_url(url)
    except UserInfoError:
        raise Invalid("the address has a user name or a password: credentials are given apart", "/source") from None
    except ValueError as error:
        raise Invalid(f"the address cannot be used: {error}", "/source") from None
    if "?" in target.text:  # it is stored, and may hold a secret
        raise Invalid("the address of a source has no query", "/source")
    return target


def _route(request: ImportRequest) -> tuple[Route, str | None]:
    """The route to the source, and its Authorization field. The route has no secret, but knows whether there is one."""
    target = _parse(request.source)
    make = partial(Route, name=target.host, target=target, owner="import", setting="--username, --password-file")
    if not request.secret:
        return make(), None
    if request.username:
        encoded = b64encode(f"{request.username}:{request.secret}".encode()).decode("ascii")
        return make(credentials=Credentials(request.username, "")), f"Basic {encoded}"
    return make(credentials=Credentials(None, "")), f"Bearer {request.secret}"


def _is_in(folder: str, allowed: str) -> bool:
    return folder == allowed or folder.startswith(allowed.rstrip("/") + "/")
