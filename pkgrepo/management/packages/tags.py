"""Tags of images: what a tag pointed to when, and its return to an earlier manifest."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from pkgrepo.errors import Invalid, existing
from pkgrepo.gateway.services import Context
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.management.api.access_rules import CONTENT_READERS, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import LARGEST, Body, Record
from pkgrepo.model import Action, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.images.push import TagImmutable, fixed_tags
from pkgrepo.repositories.upkeep.trash import set_image_tag
from pkgrepo.storage.catalog.images.manifests import has_manifest
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.packages.events import Event
from pkgrepo.untrusted.patterns import pattern

from . import images

OVERWRITERS = AccessRule("the action overwrite in the repository", action=Action.OVERWRITE, content=True)
POINTED = frozenset({"published", "cached", "tagged"})  # after these events the tag points to their digest

table = Table("packages")


class TagMove(Record):
    """One change of a tag: since this time it pointed to digest, or to nothing if that is null."""

    at: Annotated[datetime, meaning("Since when it pointed there.")]
    digest: Annotated[str | None, meaning("The digest of the manifest that it pointed to; null for nothing.")]
    by: Annotated[str, meaning("The user who moved it.")]
    stored: Annotated[bool, meaning("Whether the image still has that manifest.")]


class TagTarget(Body):
    """The manifest that a tag is to point to."""

    digest: Annotated[
        str,
        Meta(pattern=pattern(r"^sha(256|512):[0-9a-f]+$", "a digest such as sha256:..."), max_length=140),
        meaning("The digest of the manifest that the tag is to point to."),
    ]


class TagRecord(Record):
    """A tag and the manifest that it points to."""

    tag: Annotated[str, meaning("The tag.")]
    digest: Annotated[str, meaning("The digest of the manifest that it points to.")]


@table.command(
    "package history REPOSITORY NAME TAG",
    options="limit 50",
    columns="SINCE: at:time | DIGEST: digest or 'none' | BY: by | STORED: stored",
    nothing="nothing is known of a tag {tag}",
    more='The newest first; "package tag" lets it point there again.',
)
@table.get("/package/<repository>/<package>/tags/<tag>/history", CONTENT_READERS, "Show what a tag pointed to")
async def show_history(call: Call, tag: str) -> Page[TagMove]:
    """The newest first, since the image was made; also of a tag that was deleted. Only images have it (422)."""
    package = await _image(call)
    page_request = call.page_request
    before = page_request.after(LARGEST)
    found = await call.catalog.scan(_moves, package, tag, before, page_request.limit + 1)
    return page_request.page(found, lambda each: each[0].seq, lambda each: _move(*each))


@table.post(
    "/package/<repository>/<package>/tags/<tag>",
    OVERWRITERS,
    "Let a tag point to another manifest of the image",
    audit="tag.move",
)
async def move_tag(call: Call, body: TagTarget, tag: str) -> TagRecord:
    """
    Such as one of its history. 404 if the image does not have the manifest: it may be in the trash.

    Tags of policy.immutable_tags are not moved (409).
    """
    package = await _image(call)
    if fixed_tags(call.repository, [tag]):
        raise TagImmutable(tag)
    entry = call.entry(f"{call.repository.path}/{call.package}:{tag}", {"digest": body.digest})
    admitted = await call.shared.access.publishing(
        call.identity, call.repository, call.package or "", call.actor, action=Action.OVERWRITE
    )
    await call.change_content(entry, _move_tag, package, tag, body.digest, admitted)
    return TagRecord(tag=tag, digest=body.digest)


class TaggedVersion(Body):
    """The version that a tag is to stand for."""

    version: Annotated[str, meaning("The version that the tag stands for.", max_length=256)]


@table.put(
    "/package/<repository>/<package>/tags/<tag>", CONTENT_READERS, "Let a tag stand for a version", audit="tag.set"
)
async def set_tag(call: Call, body: TaggedVersion, tag: str) -> None:
    """As a client of the format does it, with the same rules. Tags of images are pushed."""
    await _change(call, tag, body.version)


@table.delete("/package/<repository>/<package>/tags/<tag>", CONTENT_READERS, "Remove a tag", audit="tag.remove")
async def remove_tag(call: Call, tag: str) -> None:
    """The version stays. A tag of an image is removed as its version is."""
    await _change(call, tag, None)


async def _change(call: Call, tag: str, version: str | None) -> None:
    change = call.format.change_tag
    if change is None:
        raise Invalid(f"packages of the format {call.format.name} have no tags that are set here", "/tag")
    call.object = f"{call.repository.path}/{call.package}:{tag}"
    await change(Context(call.shared, call.repository, None), call.request, call.package or "", tag, version)


async def _image(call: Call) -> int:
    """The catalog key of the image. :raises NotFound: there is none; :raises Invalid: the packages are no images"""
    if not images.are_in(call):
        raise Invalid(f"only images have a history of tags, and {call.repository.path} has none", "/tag")
    return (await call.find_package()).id


def _move_tag(
    tx: Transaction, repository: Repository, package_id: int, tag: str, digest: str, actor: Admitted, now_ms: int
) -> None:
    package = existing(packages.find_package_by_id(tx, package_id), "image", repository.path)
    set_image_tag(tx, repository, package, tag, digest, actor, now_ms, moves=True)


def _moves(r: Reader, package_id: int, tag: str, before: int, limit: int) -> list[tuple[Event, bool]]:
    found = events.events_of_tag(r, package_id, tag, before, limit)
    return [(each, has_manifest(r, package_id, str(each.data.get("digest")))) for each in found]


def _move(event: Event, stored: bool) -> TagMove:
    digest = event.data.get("digest") if event.kind in POINTED else None
    return TagMove(at=event.at, digest=digest, by=event.actor, stored=stored and digest is not None)
