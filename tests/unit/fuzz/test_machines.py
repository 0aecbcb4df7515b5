"""Blobs and packages in any order of steps: what was committed is there with its bytes, and nothing else is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.lab.fuzz.machines.blobs import BlobMachine
from tests.lab.fuzz.machines.contents import ContentMachine
from tests.lab.fuzz.machines.run import machines, run_machines

SHORT = settings(max_examples=5, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))

TestBlobs = BlobMachine.TestCase
TestBlobs.settings = SHORT
TestContents = ContentMachine.TestCase
TestContents.settings = SHORT


def test_every_machine_is_run_for_minutes() -> None:
    assert [*run_machines(0, ("",), 1)] == []
    assert {"blobs", "contents", "documents", "revalidation"} == set(machines())
