"""Runs a state machine in a test that awaits: the machine stands still in a greenlet while its work is done."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any

import greenlet
from hypothesis import settings as Settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def wait_for(work: Awaitable[Any]) -> Any:
    """The result of a coroutine, for which L{run_awaiting} awaits; call it in a step of its machine."""
    current = greenlet.getcurrent()
    assert current.parent is not None, "it is run by run_awaiting"
    return current.parent.switch(work)


async def run_awaiting(machine: type[RuleBasedStateMachine], settings: Settings) -> None:
    """Run a machine whose steps call L{wait_for}. :raises Exception: what the machine has found"""
    running = greenlet.greenlet(partial(run_state_machine_as_test, machine, settings=settings))
    work = running.switch()
    while not running.dead:
        try:
            result = await work
        except Exception as error:  # noqa: BLE001 - for the machine
            work = running.throw(error)
        else:
            work = running.switch(result)
