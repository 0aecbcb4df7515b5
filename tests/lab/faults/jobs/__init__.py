"""
What works beside a fault.

``JOBS`` are begun in each round, in this order. A job is a module here, or :mod:`..writers`, or
:mod:`..readers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.lab.faults.readers import READING
from tests.lab.faults.rounds import Job
from tests.lab.faults.writers import WRITING

JOBS: Final[Sequence[Job]] = (READING, WRITING)
