"""
The configuration: read once at the start, checked whole, frozen afterwards.

The command line wins over the environment, the environment over the file, the file over the defaults. Nothing below
the composition root imports this room; what a part needs is handed to it.
"""

from __future__ import annotations

from .explain import Explanation, explain, template
from .kinds import Secret
from .reading import ConfigError, read_config
from .settings import (
    Admin,
    BootstrapRepository,
    BootstrapStorage,
    BootstrapToken,
    BootstrapTokenScope,
    Config,
)

__all__ = [
    "Admin",
    "BootstrapRepository",
    "BootstrapStorage",
    "BootstrapToken",
    "BootstrapTokenScope",
    "Config",
    "ConfigError",
    "Explanation",
    "Secret",
    "explain",
    "read_config",
    "template",
]
