"""
Names that are published through a virtual repository for the first time, and that an upstream of it has, too.

From then on no upstream is asked for the name: a publish takes it over. So the response says it, or the publish is
refused with ``policy.refuse_upstream_names`` of the virtual repository. Upstreams are asked by the first publish of a
name only, unless the name is reserved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from attrs import evolve

from pkgrepo.errors import Forbidden, NotFound, UpstreamFailed
from pkgrepo.gateway.publishing.uploads import SentFile
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, BlobInfo, Extent, Repository, RepositoryType
from pkgrepo.proxy.configuration import rules_of
from pkgrepo.proxy.resolving.serving import UpstreamMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.repositories.publish.bursts import braked
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.untrusted.text import quoted

C = TypeVar("C")
Folders = Callable[[], Awaitable[Iterable[str]]]
Ask = Callable[[], Awaitable[bool]]  # whether an upstream has the name


def publishing_through(
    services: Services, request: Request, virtual: Repository, folders: Folders | None = None
) -> Services:
    """
    The services for a request that is sent to ``virtual`` and changes one of its members: new names are checked.

    ``folders`` finds those whose documents tell whether an upstream has a package, if each folder has its own.
    """

    async def check(_target: Repository, key: str) -> None:
        async def ask() -> bool:
            for document in (key,) if folders is None else [f"{each}/{key}" for each in await folders()]:
                with suppress(NotFound):
                    members = await services.proxy.resolver.members(virtual, document, Trace())
                    if any(isinstance(each, UpstreamMember) for each in members.serving):
                        return True
            return False

        await check_new_name(services, request, virtual, key, ask)

    return evolve(services, content=services.content.checking(check))


async def publish_context(context: Context[C], request: Request, folders: Folders | None = None) -> Context[C]:
    """
    The context of the hosted repository that takes changes sent to a repository, and that checks the permissions.

    For ``folders`` see L{publishing_through}.

    :raises ReadOnly: no member takes publishes; only callers who may read the repository are told so
    """
    if context.repository.type is RepositoryType.HOSTED and context.repository.view is None:
        return _telling(context, request)
    await context.admit(request, Action.READ, Extent.SOME)
    return member_context(context, request, publish_target(context.services.registry, context.repository), folders)


@asynccontextmanager
async def sent_file(
    context: Context[C], request: Request, sent: SentFile
) -> AsyncIterator[tuple[Context[C], Staged, BlobInfo]]:
    """
    The staged file of a form that is published to a repository, and the context of that which takes it.

    :raises Forbidden: the caller may publish nothing there; otherwise as ``publish_context`` and ``SentFile.receive``
    """
    context = await publish_context(context, request)
    identity = await context.admit(request, Action.WRITE)
    async with context.services.content.stage(context.repository, user_id=identity.user_id) as staged:
        yield context, staged, await sent.receive(staged)


def member_context(
    context: Context[C], request: Request, target: Repository, folders: Folders | None = None
) -> Context[C]:
    """The context of a repository that takes changes that are sent to that of ``context``."""
    if target is context.repository:
        return _telling(context, request)
    services = publishing_through(context.services, request, context.repository, folders)
    return _telling(Context(services, target, context.caches), request)


def _telling(context: Context[C], request: Request) -> Context[C]:
    """The context of a repository, which tells a client if its upload waits for an approval."""
    if braked(context.repository) is None:
        return context

    def tell(sentence: str) -> None:
        request.notes += (sentence,)

    services = evolve(context.services, content=context.services.content.telling(tell))
    return Context(services, context.repository, context.caches)


async def check_new_name(services: Services, request: Request, virtual: Repository, key: str, ask: Ask) -> None:
    """
    Note in the response to a publish that an upstream has its name, too, unless a hosted member had it before.

    :raises Forbidden: the repository refuses such names; :raises UpstreamFailed: it does, and that is not known
    """
    owners = await services.proxy.resolver.owners(virtual, key, Trace())
    if not owners.proxies or owners.merges or owners.is_taken:
        return
    refuses = rules_of(virtual).refuse_upstream_names
    try:
        if not await ask():
            return
    except UpstreamFailed:
        if refuses:
            raise
        return
    if refuses:
        raise Forbidden(
            f"{quoted(key)} is not published to {virtual.path}, since an upstream has that name "
            "(policy.refuse_upstream_names)"
        )
    request.notes += (
        f"an upstream of {virtual.path} has {quoted(key)}, too: from now on only what is published here is served",
    )
