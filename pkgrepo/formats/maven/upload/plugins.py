"""Lists uploaded plugins in the metadata of their groups, since not every client does it."""

from __future__ import annotations

from functools import partial

from pkgrepo.errors import PkgrepoError
from pkgrepo.formats.maven.metadata.descriptor import PACKAGING, find_plugin, usual_plugin
from pkgrepo.formats.maven.metadata.plugins import change_plugins, group_metadata
from pkgrepo.formats.maven.metadata.values import Plugin
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.formats.maven.push_rules import check_push
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Actor, File, Identity, Repository
from pkgrepo.storage.catalog.packages import files, packages, versions


async def list_plugin(
    services: Services, repository: Repository, target: ArtifactFile, identity: Identity, actor: Actor
) -> None:
    """
    Add the plugin to which a stored file belongs to the metadata of its group, when its POM and its jar are stored.

    A pusher who may not change the metadata of the group leaves them as they are, and the file is published.
    """
    if target.classifier or target.extension not in ("pom", "jar"):
        return
    jar: File | None = await services.catalog.look(_find_jar, repository.id, target)
    if jar is None:
        return
    at = target.coordinates
    try:
        await check_push(services, identity, repository, group_metadata(at.group))
    except (Refusal, PkgrepoError):
        return
    look = partial(find_plugin, artifact=at.artifact)
    found = await services.files.inspect(services.pools.cpu, jar.storage_id, jar, look) or usual_plugin(at.artifact)
    plugin = Plugin(found["prefix"], at.artifact, found["name"])
    await change_plugins(services, repository, at.group, actor, added=(plugin,))


def _find_jar(r: Reader, repository_id: int, target: ArtifactFile) -> File | None:
    """The jar of a version whose POM says that it is a plugin."""
    at = target.coordinates
    package = packages.find_package(r, repository_id, at.package_key)
    version = None if package is None else versions.find_version(r, package.id, at.version)
    if version is None or version.meta.get("packaging") != PACKAGING:
        return None
    return files.find_file(r, repository_id, target.path.removesuffix(target.extension) + "jar")
