"""Failures of a run are told when they happen: a run that is ended before its summary has named them."""

from __future__ import annotations

import pytest


class FailuresAtOnce:
    """A plugin of the process that writes to the terminal. With xdist that is the one which gets all reports."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write what failed, after how long, and the first line of its reason."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message if crash is not None else report.longreprtext.strip().rpartition("\n")[2]
            first = reason.partition("\n")[0][:200]
            self.terminal.line("")
            self.terminal.line(f"{report.nodeid} failed after {report.duration:.0f} s ({report.when}): {first}")
