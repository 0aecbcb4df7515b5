"""
The types of events that other programs see, and the patterns that select them.

The catalog's own kinds (``published``, ``tagged``) have a public type in ``_KINDS``; those without one are internal. A
kind with a dot in it is a public type itself: to announce something new, append an event of such a kind in the
transaction of the change (L{events.append_event}, or L{events.append_server_event} for what is about no repository),
and add the kind to ``EVENT_TYPES``, from which the documentation is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from pkgrepo.errors import Invalid

PING: Final = "ping"
EVENT_TYPES: Final[Mapping[str, str]] = {
    "package.published": "Files of a version were published, or an image was pushed.",
    "package.deleted": "A version, files of it, or an image was removed.",
    "package.yanked": "A version was yanked: clients do not choose it any more.",
    "package.unyanked": "A version is not yanked or deprecated any more.",
    "package.deprecated": "A version was deprecated.",
    "package.changed": "The metadata of a package changed, such as its owners.",
    "package.promoted": "A version was copied or moved here from another repository.",
    "package.restored": "A version was restored from the trash.",
    "package.quarantined": "An image waits for a trusted signature before readers get it, a version for an approval.",
    "package.held": "An upload waits for an approval, or was refused without one, since brakes hold its publisher.",
    "package.released": "An image or a version left the quarantine: readers get it now.",
    "package.denied": "A version was denied after a quarantine: nobody gets it.",
    "package.malware": "A record of the advisories says that versions which are, or were, here are malware.",
    "package.cleared": "That record was withdrawn.",
    "package.untrusted": "An image lost its last trusted signature.",
    "stage.created": "A stage was opened: what is published to it waits for an approval.",
    "stage.approved": "What was staged is published now.",
    "stage.rejected": "A stage was rejected or withdrawn, and what was in it is gone.",
    "stage.expired": "Nobody approved a stage in time, and what was in it is gone.",
    "tag.updated": "Tags were created, or point to another version or image.",
    "tag.deleted": "Tags were removed.",
    "tag.reverted": "A tag points again to what it did before, because no trusted signature came in time.",
    "cache.stored": "A proxy repository stored something of its upstream.",
    "cache.evicted": "Something was removed from the cache of a proxy repository.",
    "repository.created": "A repository was added.",
    "repository.updated": "The settings of a repository changed.",
    "repository.deleted": "A repository was deleted.",
    "repository.restored": "A repository was restored from the trash.",
    "member.changed": "A member of a project was added, removed, or has another role.",
    "token.created": "An access token was created.",
    "token.revoked": "An access token was revoked.",
    "token.expiring": "An access token expires in 14 days, and again in 3 days.",
    "token.canary": "A canary token was used, and refused: somebody has it who should not.",
    "upstream.down": "A proxy repository does not reach an upstream: requests to it are not sent for a while.",
    "upstream.up": "The upstream answers again.",
    "replication.failed": "A repository cannot follow the one of another server for more than a minute.",
    "replication.recovered": "It is followed again.",
    "gc.finished": "A garbage collection ended.",
    "retention.finished": "A retention run ended.",
    "backup.finished": "A backup and its check ended; state is failed if it was not made, or is damaged.",
    "import.finished": "An import from elsewhere ended; state is failed or cancelled if it was not finished.",
    "quota.warning": "More than 80 % of a quota is used.",
    "quota.exceeded": "An upload was refused because of a quota.",
    "webhook.disabled": "The server switched a webhook off, because its receiver failed for too long or is gone.",
}
# Without these, a pattern of "*" would send an event for each file that clients fetch through a proxy.
QUIET: Final = frozenset({"cache.stored", "cache.evicted"})
_KINDS: Final[Mapping[str, str]] = {
    "published": "package.published",
    "imported": "package.published",
    "deleted": "package.deleted",
    "yanked": "package.yanked",
    "restored": "package.unyanked",
    "deprecated": "package.deprecated",
    "changed": "package.changed",
    "trusted": "package.released",
    "accepted": "package.released",
    "untrusted": "package.untrusted",
    "tagged": "tag.updated",
    "untagged": "tag.deleted",
    "released": "tag.reverted",
    "cached": "cache.stored",
    "evicted": "cache.evicted",
    "repository_removed": "repository.deleted",
    "repository_restored": "repository.restored",
}


def type_of(kind: str, data: Mapping[str, Any]) -> str | None:
    """The public type of an event of this kind with these data; None for one that is internal."""
    if kind == "restored" and "reason" not in data:  # which the state of a version has, and what was in the trash not
        return "package.restored"
    return kind if "." in kind else _KINDS.get(kind)


def matches(type: str, patterns: Iterable[str]) -> bool:
    """
    Whether one of the patterns selects a type: the type itself, ``package.*``, or ``*``.

    The types in ``QUIET`` need a pattern that names them: ``*`` does not select them.
    """
    return any((each != "*" or type not in QUIET) and fnmatchcase(type, each) for each in patterns)


def check_patterns(patterns: Iterable[str]) -> list[str]:
    """The patterns, sorted, each once. :raises Invalid: one selects no type"""
    found = sorted(set(patterns))
    if not found:
        raise Invalid('name the events, such as "package.published", "package.*" or "*"', "/events")
    for each in found:
        if each != "*" and (each.translate(_NO_SPECIALS) != each or not _selects_any(each)):
            raise Invalid(f"there is no event {each!r}; known are {', '.join(EVENT_TYPES)}, package.* and *", "/events")
    return found


_NO_SPECIALS: Final = str.maketrans("", "", "?[]")


def _selects_any(pattern: str) -> bool:
    return any(fnmatchcase(each, pattern) for each in EVENT_TYPES)
