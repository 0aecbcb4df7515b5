"""Which folder a file is made of, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pkgrepo.client.packing.chart import pack_chart
from pkgrepo.client.packing.module_zip import pack_module
from pkgrepo.client.packing.packed import Packed
from pkgrepo.errors import Invalid

PACKINGS: Final[Mapping[str, Callable[[Path, str, Path], Packed]]] = {"module zip": pack_module, "chart": pack_chart}


def pack(folder: Path, version: str, known: Sequence[Mapping[str, Any]], place: Path) -> Packed:
    """
    Make a file of a folder, in the empty folder ``place``; ``version`` is that which the caller gave, or empty.

    ``known`` are the folders that the server has said that the repository takes: ``marker``, ``packing``, ``advice``.

    :raises Invalid: the repository takes no such folder, or it is not what it should be
    :raises OSError: it cannot be read
    """
    for each in known:
        if not (folder / each["marker"]).is_file():
            continue
        if each["advice"]:
            raise Invalid(f"{folder} is a folder: {each['advice']}")
        if each["packing"] not in PACKINGS:
            raise Invalid(f"{folder} is a folder, and this program is too old to pack it: send the packed file")
        return PACKINGS[each["packing"]](folder, version, place)
    if known:
        wanted = " or ".join(each["marker"] for each in known)
        raise Invalid(f"{folder} is a folder without {wanted}, by which this repository knows what to do with one")
    raise Invalid(f"{folder} is no file")
