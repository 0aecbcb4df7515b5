"""
The configuration: read once at the start, validated as a whole, then immutable.

Precedence: command line, environment, file, defaults. Only the composition root imports this package; other parts get
their values as parameters.
"""

from __future__ import annotations

from .explain import Explanation, explain, template
from .kinds import Secret
from .reading import ConfigError, read_config
from .settings import (
    MOST_WORKERS,
    Admin,
    BootstrapRepository,
    BootstrapStorage,
    BootstrapToken,
    BootstrapTokenScope,
    Config,
)

__all__ = [
    "MOST_WORKERS",
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
