"""Limits of what clients send, besides those of paths and of archives."""

from __future__ import annotations

from typing import Final

CHECKSUM_SIZE: Final = 4096  # bytes of a checksum file, which may also have the name of its file
PLUGIN_SIZE: Final = 4 * 1024 * 1024  # bytes of a plugin's descriptor, which describes each parameter of each goal
