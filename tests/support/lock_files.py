"""What formats say of lock files."""

from __future__ import annotations

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config

FORMATS = {name: each.mirrored for name, each in make_formats(Config()).items()}
