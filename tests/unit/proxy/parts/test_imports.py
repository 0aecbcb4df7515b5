"""What a worker process imports: it starts in a tenth of a second only without Twisted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pkgrepo
from pkgrepo.proxy.parts import worker

ROOT = Path(pkgrepo.__file__).parent.parent
NORMALISERS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "pkgrepo/formats").glob("*/proxied/normaliser.py"))
]


@pytest.mark.parametrize("module", [worker.__name__, *NORMALISERS])
def test_a_worker_does_not_import_twisted(module: str) -> None:
    code = f"import sys, {module}; sys.exit('twisted' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
