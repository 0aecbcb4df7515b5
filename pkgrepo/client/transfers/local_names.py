"""Names that files may get on this machine, of those that a server has."""

from __future__ import annotations

import os
import re
from typing import Final

from pkgrepo.errors import Invalid

WINDOWS: Final = os.name == "nt"
# Of Windows: what separates folders, names a stream or a pattern, or stands for a device, whatever its extension.
_NOT_IN_NAMES: Final = re.compile(r'[<>:"|?*/\\]')
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:[. ].*)?", re.IGNORECASE)


def check_name(name: str, *, windows: bool = WINDOWS) -> str:
    """
    The name of a file or folder, which stays within the folder in which it is made, and is written as it is.

    The names of a server are not trusted with the disk. With ``windows`` it must be one that Windows has, too: others
    would write to a device, beside the folder, or into a stream of another file.

    :raises Invalid: it cannot be the name of a file here
    """
    if name.strip(".") == "" or not name.isprintable() or "/" in name or "\\" in name:
        raise Invalid(f"{name!r} is no name of a file")
    if windows and (_NOT_IN_NAMES.search(name) or _DEVICE.fullmatch(name) or name[-1] in ". "):
        raise Invalid(f"{name!r} is no name of a file on Windows")
    return name
