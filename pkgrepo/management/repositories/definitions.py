"""
Makes repositories as they are defined: one engine for the API, by which the console and ``pkgrepo repo apply`` make
them, and for what the settings declare. So what one of them refuses, the other one does, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.gateway.format import Format
from pkgrepo.gateway.image_addresses import check_hides_nothing
from pkgrepo.interfaces import Transaction
from pkgrepo.management.repositories.stored import pointing_into, validated
from pkgrepo.model import Repository, Storage
from pkgrepo.oidc.issuers import Issuers
from pkgrepo.oidc.publishers import check_given
from pkgrepo.proxy.definitions import add_repository


def define(
    format_: Format, issuers: Issuers, storage: str, name: str, config: Mapping[str, Any], pointer: str = ""
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The configuration of a repository to be made, of which is valid what the catalog need not be asked for: the fixed
    object, with members and secrets as they were given, and the settings. ``pointer`` is that of the configuration.

    :raises Invalid: something in it cannot be so; with the JSON pointer
    """
    fixed, settings = validated(format_, config, pointer)
    with pointing_into(pointer):
        for index, each in enumerate(settings.get("publishers") or ()):
            check_given(issuers, each, f"/publishers/{index}")
    format_.check_place(storage, name)
    return fixed, settings


def make_repository(
    tx: Transaction, /, storage: Storage, format: str, name: str, *, default: str, **more: Any
) -> Repository:
    """
    Add a repository and its companions, with what ``add_repository`` takes ``more``: its configuration as it is stored.
    ``default`` is the path of the default repository of images.

    :raises Invalid: its members are wrong; :raises Conflict: the name is taken, or would hide images
    """
    check_hides_nothing(tx, default, format, storage.name, name)
    return add_repository(tx, storage_id=storage.id, format=format, name=name, **more)
