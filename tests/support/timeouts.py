"""The timeout of everything that tests wait for: a bound for hangs, which no test expects to be reached."""

from __future__ import annotations

# Seconds. A busy machine may be many times slower than an idle one. The time limit of a test (pyproject.toml) is a
# little longer, so that a hang fails at the call that waits, whose traceback shows what it waits for.
TIMEOUT_S = 300
