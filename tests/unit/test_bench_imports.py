"""bin/bench runs in an environment of its own, which has less than the project's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS = ROOT / "tests" / "bench" / "requirements.txt"
# Imports the command, and refuses what neither Python nor this checkout nor the pins have.
SCRIPT = """
import sys
class Pins:
    def find_spec(self, name, path=None, target=None):
        if path is None and name not in sys.stdlib_module_names and name not in ALLOWED and not name.startswith("_"):
            raise ImportError(name)
ALLOWED = {"tests", "pkgrepo", "attr", *sys.argv[1:]}
sys.meta_path.insert(0, Pins())
import tests.bench.__main__
"""


def test_the_command_needs_only_what_it_installs() -> None:
    lines = [line for line in PINS.read_text().splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0].replace("-", "_") for line in lines]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
