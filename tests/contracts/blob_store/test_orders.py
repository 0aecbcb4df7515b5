"""Blob stores: after any order of uploads, deletions and sweeps, committed bytes are there, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.lab.fuzz.machines.awaiting import run_awaiting, wait_for
from tests.lab.fuzz.machines.blobs import BlobMachine
from tests.support.blob_store_cases import CASES, installed_cases

# A failure is shown as it was found: to make it smaller takes minutes.
SHORT = settings(
    max_examples=3,
    stateful_step_count=15,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("kind", installed_cases())
async def test_any_order_keeps_committed_bytes(kind: str) -> None:
    class Machine(BlobMachine):
        case: Any = None

        def open_store(self) -> Any:
            if self.case is not None:
                return self.run(self.case.another())
            self.case = CASES[kind](self.folder / "store")
            return self.run(self.case.start())

        def run(self, work: Awaitable[Any]) -> Any:
            return wait_for(work)

        def teardown(self) -> None:
            for each in self.open:
                self.run(each.upload.abort())
            self.open = []
            if self.case is not None:
                self.run(self.case.stop())
            super().teardown()

    await run_awaiting(Machine, SHORT)
