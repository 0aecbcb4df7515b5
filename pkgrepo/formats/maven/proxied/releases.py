"""How a file of an upstream is kept: as a file of its version, which a POM describes."""

from __future__ import annotations

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.model import BlobInfo
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.pools import Pools


async def release_of(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file whose bytes are ``blob``. :raises Invalid: it is no file of an artifact"""
    target = parse_text(file.source.path)
    if not isinstance(target, ArtifactFile):
        raise Invalid("this is not the path of a file of an artifact", "path")
    pom = None
    if target.extension == "pom" and not target.classifier and blob.size <= POM_SIZE:
        pom = await staged.inspect(pools.cpu, blob, _look)
    meta = None if pom is None else pom.meta()
    return make_release(target.coordinates, [new_file(target, blob)], meta)


def _look(source: int | bytes) -> Pom | None:
    """What a POM says; None also if it is malformed, since clients get it as it is."""
    try:
        if isinstance(source, bytes):
            return read_pom(source)
        with open(source, "rb", closefd=False) as file:
            return read_pom(file.read(POM_SIZE))
    except Invalid:
        return None
