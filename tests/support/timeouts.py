"""How long tests wait for what must come: a bound for what hangs, never an expectation."""

from __future__ import annotations

# Seconds. A machine that does much else may be many times slower than this one; the time limit of a test
# (pyproject.toml) is a little longer, so that what hangs is named by whoever waits for it.
TIMEOUT_S = 300
