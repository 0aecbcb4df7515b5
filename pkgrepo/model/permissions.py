"""Actions in repositories, and the grants that allow them."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class Action(StrEnum):
    """What a caller may do in a repository, in ascending order."""

    READ = "read"
    WRITE = "write"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    EDIT = "edit"
    ADMIN = "admin"


class SubjectKind(StrEnum):
    """Whether a grant or a membership is of a user or of a group."""

    USER = "user"
    GROUP = "group"


@frozen
class Grant:
    """
    The actions that a user or group may take in a repository; an empty set is an explicit refusal.

    ``subject_uid`` and ``subject_name`` are only shown.
    """

    repository_id: int
    subject_kind: SubjectKind
    subject_id: int
    actions: frozenset[Action]
    subject_uid: str = ""
    subject_name: str = ""
