"""Runs state machines for some time, each with new examples; what is found is printed as a test that repeats it."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from .blobs import BlobMachine
from .contents import ContentMachine

STEPS = 40
EXAMPLES = 3  # of one call, so that a short run ends in time

Machines = Mapping[str, type[RuleBasedStateMachine]]


def machines() -> Machines:
    """All of them, by name; those beside tests are imported with these."""
    from tests.unit.proxy.caching.test_model import RevalidationMachine
    from tests.unit.repositories.layout.test_random_orders import Orders

    return {"blobs": BlobMachine, "contents": ContentMachine, "documents": Orders, "revalidation": RevalidationMachine}


def run_machines(minutes: float, only: tuple[str, ...], seed: int) -> Iterator[str]:
    """Run machines in turn, each for its part of the time; a text for each that fails."""
    chance = random.Random(seed)
    chosen = {name: each for name, each in machines().items() if name.startswith(only)}
    for name, machine in chosen.items():
        ends_at = time.monotonic() + minutes * 60 / len(chosen)
        done = 0
        while time.monotonic() < ends_at:
            told = StringIO()
            some = settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                derandomize=False,
                phases=[Phase.generate, Phase.shrink],
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            )
            try:
                with redirect_stdout(told):
                    run_state_machine_as_test(with_seed(chance.getrandbits(64))(machine), settings=some)
            except Exception:  # noqa: BLE001 - whatever it is
                yield f"{name}:\n{told.getvalue()}{traceback.format_exc()}"
                break
            done += EXAMPLES
        print(f"machine {name}: {done} orders of {STEPS} steps", flush=True)
