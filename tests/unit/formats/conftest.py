"""Servers without ports for the tests of formats."""

from __future__ import annotations

from tests.unit.management.conftest import make_stack, stack

__all__ = ["make_stack", "stack"]
