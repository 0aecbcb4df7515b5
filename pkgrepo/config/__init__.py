"""
The configuration: read once at the start, validated as a whole, then immutable.

Precedence: command line, environment, file, defaults. Only the composition root imports this package; other parts get
their values as parameters.
"""

from __future__ import annotations

from .explain import explain, template
from .reading import ConfigError, read_config
from .sections.bootstrap import BootstrapRepository, BootstrapStorage, BootstrapToken
from .sections.texts import MOST_WORKERS
from .settings import Config

__all__ = [
    "MOST_WORKERS",
    "BootstrapRepository",
    "BootstrapStorage",
    "BootstrapToken",
    "Config",
    "ConfigError",
    "explain",
    "read_config",
    "template",
]
