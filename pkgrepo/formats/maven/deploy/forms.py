"""A file of a version in a form of the console, with its POM: published as a session of one or two files."""

from __future__ import annotations

from functools import partial
from typing import Final
from xml.sax.saxutils import escape

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.deploy.access import admit
from pkgrepo.formats.maven.deploy.session_requests import (
    Session,
    begin_files,
    publish_files,
    read_session,
    stage_file,
)
from pkgrepo.formats.maven.deploy.work import drop
from pkgrepo.formats.maven.paths import ALGORITHMS, ArtifactFile
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import BlobInfo, File
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files

POM: Final = ".pom"
# As maven-deploy-plugin makes one for a file without.
MADE: Final = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>{packaging}</packaging>
</project>
"""


@frozen
class SentVersion:
    """A version as a form describes it: its POM, and its main file unless the POM is all."""

    session: Session
    pom: bytes
    main: SentFile | None

    @property
    def files(self) -> list[ArtifactFile]:
        """What will be published, the POM first."""
        found = [self.session.file(path.rpartition("/")[2]) for path in self.session.expected]
        return [each for each in found if each is not None]


async def read_sent(services: Services, sent: SentFile) -> SentVersion:
    """
    What a form publishes. The coordinates are those of its fields, else those of its POM.

    :raises Invalid: they are incomplete or malformed, or the POM is
    """
    ending = sent.name.rpartition(".")[2].lower()
    pom, main = (await sent.read(POM_SIZE), None) if ending == "pom" else (sent.fields.get("pom", b""), sent)
    said = await services.pools.cpu(read_pom, pom) if pom else Pom("", "", "")
    if said is None:
        raise Invalid("the POM cannot be read: it has a DOCTYPE, or an unknown encoding", "pom")
    named = {"group": said.group, "artifact": said.artifact, "version": said.version}
    at = {name: sent.text(name) or text for name, text in named.items()}
    missing = [name for name, text in at.items() if not text]
    if missing:
        raise Invalid(f"the form needs the {' and the '.join(missing)} of the file, or a POM that says it", missing[0])
    if not pom:
        pom = MADE.format(packaging=ending, **{name: escape(text) for name, text in at.items()}).encode()
    stem = f"{at['artifact']}-{at['version']}"
    names = [f"{stem}{POM}", *([] if main is None else [f"{stem}.{ending}"])]
    session = read_session(
        {
            "group_id": at["group"],
            "artifact_id": at["artifact"],
            "version": at["version"],
            "files": [{"file_name": each} for each in names],
        }
    )
    return SentVersion(session, pom, main)


async def publish_sent(context: MavenContext, request: Request, sent: SentVersion) -> Uploaded:
    """
    Publish what a form describes; nothing of it is kept if a part of it is refused.

    :raises PkgrepoError, Refusal: as for the same files in a session of a client
    """
    pusher = await admit(context, request)
    deployment = await begin_files(context, pusher, sent.session)
    pom, *others = sent.files
    try:
        store = partial(_store, data=sent.pom)
        staged = {pom.path: await stage_file(context, pusher, deployment, pom, store)}
        for each in others:
            assert sent.main is not None, "there is another file than the POM"
            receive = partial(sent.main.receive, algorithms=ALGORITHMS)
            staged[each.path] = await stage_file(context, pusher, deployment, each, receive)
        changed = await _differs(context, staged)
        pusher = await admit(context, request)  # again: the file may have taken hours
        await publish_files(context, request, pusher, deployment)
    except BaseException:
        await drop(context, pusher, deployment)
        raise
    at = sent.session.coordinates
    path, blob = list(staged.items())[-1]
    return Uploaded(at.package_key, at.version, changed, path, blob.sha256)


async def _store(staged: Staged, data: bytes) -> BlobInfo:
    return await staged.store(data, ALGORITHMS)


async def _differs(context: MavenContext, staged: dict[str, BlobInfo]) -> bool:
    """Whether a staged file is not published with the same bytes already."""
    for path, blob in staged.items():
        found: File | None = await context.services.catalog.look(files.find_file, context.repository.id, path)
        if found is None or found.sha256 != blob.sha256:
            return True
    return False
