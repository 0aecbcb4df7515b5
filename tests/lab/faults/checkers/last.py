"""What is looked at once, when all rounds are over: first of the server that still runs, then of what it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import define, field

from tests.lab.faults.clients import Lab
from tests.support.data_folder import DataFolder
from tests.support.first_publishes import Publisher

from .contents import Versions
from .events import read_events, wrong_events
from .leftovers import leftovers
from .reindexed import contents, reindexed
from .secrets import in_files, in_texts
from .usage import wrong_counts


@define
class Last:
    """``data`` are those of the server, on this machine; ``folder`` is a new one for copies of them."""

    lab: Lab
    data: DataFolder
    folder: Path
    _before: Mapping[str, Versions] = field(factory=dict, init=False)

    def running(self) -> Iterator[str]:
        """What is wrong with a server that runs."""
        api = Publisher(self.lab.urls[0], self.lab.auth)
        try:
            yield from wrong_events(read_events(api), self.lab.ledger)
            yield from leftovers(api, self.data)
            yield from wrong_counts(self.data)
            self._before = contents(api)
        except AssertionError as error:
            yield str(error)

    def stopped(self, outputs: Iterable[str]) -> Iterator[str]:
        """What is wrong with the data of a server that was stopped, and with what its processes have written."""
        yield from in_texts(self.lab.secrets, outputs)
        yield from in_files(self.lab.secrets, self.data.folder)
        yield from reindexed(self._before, self.data, self.folder, self.lab.auth)
