"""
Makes repositories as they are defined: one engine for the API, by which the console and ``pkgrepo repo apply`` make
them, and for what the settings declare. So what one of them refuses, the other one does, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pkgrepo.gateway.format import Format
from pkgrepo.gateway.image_addresses import check_hides_nothing
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.names import parse_visibility
from pkgrepo.management.repositories.stored import pointing_into, validated
from pkgrepo.model import Repository, Visibility
from pkgrepo.oidc.issuers import Issuers
from pkgrepo.oidc.publishers import check_given
from pkgrepo.proxy.definitions import add_repository
from pkgrepo.repositories.companions import Companions


@frozen(kw_only=True)
class Definition:
    """
    A repository that is to be made, and of which is valid what the catalog need not be asked for.

    ``fixed`` is the fixed object of its configuration with members and secrets as they were given, ``settings`` is the
    rest as it is stored.
    """

    format: Format
    storage: str
    name: str
    visibility: Visibility
    description: str
    active: bool
    fixed: Mapping[str, Any]
    settings: Mapping[str, Any]


def define(
    format_: Format,
    issuers: Issuers,
    *,
    storage: str,
    name: str,
    visibility: str,
    description: str,
    active: bool,
    config: Mapping[str, Any],
    pointer: str = "",
) -> Definition:
    """
    The definition of a repository; ``pointer`` is that of its configuration, with which those of errors begin.

    :raises Invalid: something in it cannot be so; with the JSON pointer
    """
    fixed, settings = validated(format_, config, pointer)
    with pointing_into(pointer):
        for index, each in enumerate(settings.get("publishers") or ()):
            check_given(issuers, each, f"/publishers/{index}")
    format_.check_place(storage, name)
    return Definition(
        format=format_,
        storage=storage,
        name=name,
        visibility=parse_visibility(visibility),
        description=description,
        active=active,
        fixed=fixed,
        settings=settings,
    )


def make_repository(
    tx: Transaction,
    definition: Definition,
    *,
    storage_id: int,
    fixed: Mapping[str, Any],
    companions: Companions,
    default: str,
    now_ms: int,
) -> Repository:
    """
    Add a repository and its companions. ``fixed`` is its fixed object as it is stored, with ids of members and sealed
    secrets; ``default`` is the path of the default repository of images.

    :raises Invalid: its members are wrong; :raises Conflict: the name is taken, or would hide images
    """
    check_hides_nothing(tx, default, definition.format.name, definition.storage, definition.name)
    return add_repository(
        tx,
        companions=companions,
        storage_id=storage_id,
        name=definition.name,
        format=definition.format.name,
        visibility=definition.visibility,
        description=definition.description,
        active=definition.active,
        config=fixed,
        settings=definition.settings,
        now_ms=now_ms,
    )
