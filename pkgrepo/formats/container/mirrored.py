"""What lists of images name."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.gateway.mirrored.places import Mirrored, is_version

from .locks import read_images

MIRRORED: Final = Mirrored(
    lock_files=(),
    read_list=read_images,
    name_sign=re.compile(r"image"),
    is_wanted=is_version,
)
