"""Which wheel a package was made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.utils import parse_wheel_filename

from pkgrepo.formats.conda.index.packages import DERIVED
from pkgrepo.repositories.format import DerivedFrom


def wheel_of(attrs: Mapping[str, Any]) -> DerivedFrom | None:
    """The wheel, from the attributes of the package's file; None for one that was published."""
    origin = attrs.get(DERIVED)
    if origin is None:
        return None
    project, version, *_ = parse_wheel_filename(origin["path"].rpartition("/")[2])
    return DerivedFrom(project, str(version), origin["path"], origin["sha256"])
