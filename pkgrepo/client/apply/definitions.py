"""
Definitions of repositories, groups, rights, projects and upkeep in files, settings on the command line, and the
differences between two JSON values.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from attrs import frozen
from msgspec import UNSET, Meta, UnsetType

from pkgrepo.errors import Invalid

LARGEST = 4 * 1024 * 1024  # bytes of a file

HIDDEN: Final = "***"  # what the API shows in place of a stored secret
ABSENT: Final = object()
VISIBILITIES: Final = ("public", "private", "hidden")  # of repositories
_SECRETS: Final = frozenset({"password", "token", "secret"})


class Definition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A repository as a file describes it; what is absent is not changed, and has the server's default when created."""

    name: Annotated[str, Meta(min_length=1)]
    format: str
    storage: str = "main"
    visibility: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    quota: int | UnsetType | None = UNSET
    config: dict[str, Any] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """:raises ValueError: nothing has such a visibility"""
        if self.visibility is not UNSET and self.visibility.lower() not in VISIBILITIES:
            raise ValueError(f"visibility is one of {', '.join(VISIBILITIES)}")

    @property
    def path(self) -> str:
        """The storage and the name."""
        return f"{self.storage}/{self.name}"

    @property
    def type(self) -> str:
        """The type in the configuration; a repository without configuration is hosted."""
        return "Hosted" if self.config is UNSET else str(self.config.get("type", "Hosted"))


class GrantGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The actions of a group or user in a repository (storage/name, or a pattern); none are a refusal."""

    repository: str
    actions: list[str]

    @property
    def is_pattern(self) -> bool:
        """Whether it is for all repositories that a pattern matches, so that none needs to be there."""
        return any(each in self.repository for each in "*?[")


class GroupGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A group as a file describes it; ``members`` are user names. What is absent is not changed."""

    name: Annotated[str, Meta(min_length=1)]
    description: str | UnsetType = UNSET
    members: list[str] | UnsetType = UNSET
    grants: list[GrantGiven] | UnsetType = UNSET


class UserGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The rights of a user, who must exist; what is absent is not changed."""

    username: Annotated[str, Meta(min_length=1)]
    grants: list[GrantGiven] | UnsetType = UNSET
    default_actions: list[str] | UnsetType = UNSET


class MemberGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The role of a user or a group in a project."""

    user: str = ""
    group: str = ""
    role: str = "developer"

    def __post_init__(self) -> None:
        """:raises ValueError: it names both or neither"""
        if bool(self.user) == bool(self.group):
            raise ValueError("name either a user or a group")

    @property
    def place(self) -> str:
        """Who it is: the kind and the name in lower case."""
        return f"user {self.user.casefold()}" if self.user else f"group {self.group.casefold()}"


class BindingGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Package names of a repository that a project owns."""

    repository: str
    pattern: str


class ProjectGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A project as a file describes it; what is absent is not changed."""

    key: Annotated[str, Meta(min_length=1)]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    visibility: str | UnsetType = UNSET
    quota: int | UnsetType | None = UNSET
    members: list[MemberGiven] | UnsetType = UNSET
    bindings: list[BindingGiven] | UnsetType = UNSET


class QuotaGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The limits of a place: storage/repository, a storage, project:KEY, user:NAME or server; None: no limit."""

    place: Annotated[str, Meta(min_length=1)]
    bytes: int | str | None = None
    packages: int | None = None
    versions: int | None = None
    file_size: int | str | None = None


class WebhookGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """
    A webhook of the server, a repository or a project, which is known by its name there.

    The secret is that of a new webhook: one that exists keeps its own. Without one, the server makes it.
    """

    name: Annotated[str, Meta(min_length=1)]
    url: str
    events: Annotated[list[str], Meta(min_length=1)]
    repository: str = ""
    project: str = ""
    format: Literal["cloudevents", "plain"] | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    secret: str | None = None

    def __post_init__(self) -> None:
        """:raises ValueError: it names two places"""
        if self.repository and self.project:
            raise ValueError("a webhook is of a repository or of a project")


class PinGiven(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A version that retention keeps; of an image, a tag or a digest."""

    repository: str
    package: str
    version: str
    reason: str = ""


class Given(msgspec.Struct, forbid_unknown_fields=True):
    """What a file describes."""

    repositories: list[Definition] = []
    groups: list[GroupGiven] | UnsetType = UNSET
    users: list[UserGiven] | UnsetType = UNSET
    projects: list[ProjectGiven] | UnsetType = UNSET
    quotas: list[QuotaGiven] | UnsetType = UNSET
    retention: dict[str, Any] | UnsetType | None = UNSET
    webhooks: list[WebhookGiven] | UnsetType = UNSET
    pins: list[PinGiven] | UnsetType = UNSET


def read_definitions(path: Path) -> Given:
    """
    What a TOML or JSON file (``-``: JSON from standard input) describes; repositories without members come first.

    :raises Invalid: it is no such file, or describes something twice; :raises OSError: it cannot be read
    """
    value = read_value(path)
    try:
        found = msgspec.convert(value, Given)
    except msgspec.ValidationError as error:
        raise Invalid(f"{path}: {error}") from None
    for names in (
        [each.path for each in found.repositories],
        [each.name for each in found.groups or ()],
        [each.username for each in found.users or ()],
        [each.key for each in found.projects or ()],
        [each.place for each in found.quotas or ()],
        [f"{each.repository} {each.project} {each.name}".strip() for each in found.webhooks or ()],
        [f"{each.repository} {each.package} {each.version}" for each in found.pins or ()],
    ):
        keys = [each.casefold() for each in names]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                raise Invalid(f"{path}: {names[number]} is there twice")
    found.repositories.sort(key=lambda each: each.type == "Virtual")  # members must exist
    return found


def read_value(path: Path) -> Any:
    """
    The value in a JSON file, or in a TOML file by its ending.

    :raises Invalid: the file is no such definition; :raises OSError: it cannot be read
    """
    if str(path) == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Invalid(f"{path} is longer than {LARGEST} bytes")
    try:
        if path.suffix.lower() == ".toml":
            return tomllib.loads(data.decode())
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}") from None


def with_assignments(config: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """
    A configuration with values set by ``a.b=VALUE``, where VALUE is JSON, or a text.

    :raises Invalid: an assignment has no name, or leads into a value that is no object
    """
    changed: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    for each in assignments:
        name, equals, text = each.partition("=")
        keys = name.split(".")
        if not equals or not all(keys):
            raise Invalid(f"--set takes KEY=VALUE, such as push_rules.allow_overwrite=true, not {each!r}")
        place = changed
        for key in keys[:-1]:
            inner = place.setdefault(key, {})
            if inner is None:
                inner = place[key] = {}
            if not isinstance(inner, dict):
                raise Invalid(f"{key} in {name} is no object")
            place = inner
        try:
            place[keys[-1]] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            place[keys[-1]] = text
    return changed


@frozen
class Difference:
    """A value that differs, by its JSON pointer; ``ABSENT`` where there is none."""

    pointer: str
    before: Any
    after: Any

    @property
    def is_secret(self) -> bool:
        """Whether the value is a secret, which is never shown."""
        return self.pointer.rpartition("/")[2] in _SECRETS

    def to_json(self) -> dict[str, Any]:
        """The difference for programs; a value that is absent is left out."""
        values = {"before": self.before, "after": self.after}
        return {
            name: HIDDEN if self.is_secret else without_secrets(value)
            for name, value in values.items()
            if value is not ABSENT
        }

    def lines(self) -> Iterator[str]:
        """The difference for people: ``- `` before the old value, ``+ `` before the new one."""
        if self.is_secret:
            yield f"  ~ {self.pointer}: a secret, which is set again"
            return
        if self.before is not ABSENT:
            yield f"  - {self.pointer}: {_written(self.before)}"
        if self.after is not ABSENT:
            yield f"  + {self.pointer}: {_written(self.after)}"


def differences(before: Any, after: Any, pointer: str = "") -> list[Difference]:
    """
    What changes from one value to another, in the order of the keys.

    Objects are compared by key, and lists of the same length by position. A stored secret, which cannot be read, is
    taken to be another one than any that is given.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        return [
            each
            for key in keys
            for each in differences(before.get(key, ABSENT), after.get(key, ABSENT), f"{pointer}/{_escaped(key)}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for number, (old, new) in pairs for each in differences(old, new, f"{pointer}/{number}")]
    if before == after and type(before) is type(after):
        return []
    return [Difference(pointer, before, after)]


def without_secrets(value: Any) -> Any:
    """A value in which secrets are replaced, for printing."""
    if isinstance(value, dict):
        return {
            key: HIDDEN if key in _SECRETS and isinstance(each, str) else without_secrets(each)
            for key, each in value.items()
        }
    return [without_secrets(each) for each in value] if isinstance(value, list) else value


def _written(value: Any) -> str:
    return msgspec.json.encode(without_secrets(value)).decode()


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")  # RFC 6901
