"""What the process that writes a twin leaves on the disk of the server: nothing, however it ends."""

from types import SimpleNamespace

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError
from twisted.internet.protocol import Factory

from pkgrepo.composition import twins
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import PkgrepoError
from pkgrepo.repositories.upkeep.twins import TwinPlan

PLAN = TwinPlan(name="cdn", repository="main/npm", target="s3://bucket/npm", every_s=10)


class Scene:
    """A server with a data folder, whose processes are ended by ``outcome``."""

    def __init__(self, data, pools, monkeypatch):
        self.core = SimpleNamespace(
            reactor=reactor, pools=pools, config=SimpleNamespace(data=SimpleNamespace(dir=data))
        )
        self.folder = data / twins.SCRATCH / PLAN.mark
        self.outcome = (1, b"", "it failed")
        monkeypatch.setattr(twins.Child, "run", self.run)

    async def run(self, _reactor, _arguments, variables):
        assert variables["TMPDIR"] == str(self.folder)
        assert list(self.folder.iterdir()) == []
        assert self.folder.stat().st_mode & 0o077 == 0
        (self.folder / "pkgrepo-twin-x").mkdir()
        (self.folder / "pkgrepo-twin-x" / "draft").write_bytes(b"x")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def write(self):
        progress = SimpleNamespace(begin=lambda *_: None, end=lambda: None)
        return await twins._write(self.core, Factory(), PLAN, progress)


@pytest_twisted.async_yield_fixture
async def pools():
    made = Pools(reactor)
    made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize("outcome", [(1, b"", "it failed"), CancelledError()])
@pytest_twisted.ensureDeferred
async def test_what_was_on_its_way_is_removed(tmp_path, pools, monkeypatch, outcome):
    scene = Scene(tmp_path, pools, monkeypatch)
    scene.folder.mkdir(parents=True)
    (scene.folder / "of a server that was killed").write_bytes(b"x")
    scene.outcome = outcome
    with pytest.raises((PkgrepoError, CancelledError)):
        await scene.write()
    assert not scene.folder.exists()


@pytest_twisted.ensureDeferred
async def test_a_data_folder_that_cannot_be_written_is_named(tmp_path, pools, monkeypatch):
    scene = Scene(tmp_path, pools, monkeypatch)
    scene.folder.parent.write_bytes(b"a file")
    with pytest.raises(PkgrepoError, match="cannot be made"):
        await scene.write()
