"""Explains what a channel serves of a package, which may be in several folders: that which serves it, or noarch."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from pkgrepo.formats.conda.names import NOARCH, SUBDIRS, version_key
from pkgrepo.formats.conda.proxied.questions import repodata_question
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.explaining import Explainer, Explanation, Outcome


async def explain_package(
    format_: Any,
    services: Services,
    repository: Repository,
    name: str,
    version: str | None,
    *,
    revalidate: bool,
) -> Explanation:
    """
    See L{IExplainingFormat.explain}; ``format_`` is that of conda.

    Of an upstream those folders are looked at that it was asked for, and noarch.

    :raises Invalid: the version is malformed
    """
    explainer = Explainer(
        catalog=services.catalog,
        clock=services.clock,
        pools=services.pools,
        resolver=services.proxy.resolver,
        files=services.proxy.package_files,
        formats={repository.format: format_},
        indexed={repository.format: format_},
    )
    key = None if version is None else version_key(version)
    steps = []
    first: Explanation | None = None
    for subdir in await upstream_folders(services, repository):
        found = await explainer.explain(repository, f"{subdir}/{name}", version_key=key, revalidate=revalidate)
        steps += [each for each in found.steps if each not in steps]
        if found.outcome is Outcome.SERVED:
            return evolve(found, steps=steps)
        if first is None or first.outcome is Outcome.NOT_FOUND:
            first = found
    assert first is not None, "there is one folder at least"
    return evolve(first, steps=steps)


async def upstream_folders(services: Services, repository: Repository) -> list[str]:
    """The folders that upstreams of a repository were asked for, and noarch."""
    found = {NOARCH}
    for each in services.proxy.resolver.leaves(repository):
        if each.type is RepositoryType.PROXY:
            for subdir in SUBDIRS:
                held = await services.proxy.documents.find(each, repodata_question(subdir).key)
                if held is not None and held.document.found:
                    found.add(subdir)
    return [each for each in SUBDIRS if each in found]
