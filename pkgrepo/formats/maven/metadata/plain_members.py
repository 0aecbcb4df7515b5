"""
Metadata that hosted members of a virtual repository have as plain files: those of groups of plugins.

A group is no package, so no member owns it: the plugins in the files are joined with those of upstreams.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository
from pkgrepo.proxy.resolving.members import MemberParts
from pkgrepo.storage.catalog.packages import files

from .indexing import FOLDED
from .upload_fragment import Uploaded
from .values import VERSION


def read_plain(reader: Reader, members: Sequence[Repository], path: str) -> list[MemberParts]:
    """What plain files at a path say of plugins, in the order of the members that have one."""
    found = (files.find_file(reader, each.id, path) for each in members)
    return [_parts(each) for each in found if each is not None and each.package_id is None and FOLDED in each.attrs]


def _parts(file: File) -> MemberParts:
    said = msgspec.convert(file.attrs[FOLDED], Uploaded)
    top = {
        "last_updated_ms": round(file.created_at.timestamp() * 1000),
        "plugins": msgspec.to_builtins(said.plugins),
        "others": msgspec.to_builtins(said.others),
    }
    return MemberParts(top, {VERSION: []})
