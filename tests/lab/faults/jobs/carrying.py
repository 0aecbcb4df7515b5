"""Packages that are mirrored from a second server, written into a bundle, and read into another repository."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.support.first_publishes import Publisher

from .far import FarServer, admin_token, run
from .task import Kept, Task, told

SOURCE: Final = "source"  # at the far server, of npm
MIRROR: Final = "mirrored"
INTO: Final = "carried"


@define
class Load:
    """A version of the source: mirrored, in a bundle (its path), and carried, by what was acknowledged."""

    name: str
    version: str
    mirrored: Kept
    carried: Kept
    is_mirrored: bool = False
    bundle: Path | None = None
    is_carried: bool = False

    def __str__(self) -> str:
        return f"load {self.name} {self.version}"


@define
class Carrying(Task):
    """What a mirror, a bundle and an import have acknowledged is there, also when the source is away."""

    name: ClassVar = "mirrors and bundles"
    chance: ClassVar = 0.5  # its steps take seconds
    near: ClassVar = True
    steps: ClassVar = {"mirror": 4, "write": 1, "read": 2}

    far: FarServer = field(init=False)
    loads: list[Load] = field(factory=list, init=False)
    _token: str = field(default="", init=False)
    _key: str = field(default="", init=False)

    def prepare(self) -> None:
        api = self.api()
        self.far = FarServer(self.folder / "far", self.lab)
        self.far.api.create(SOURCE, "npm")
        routes = [{"url": f"{self.far.url}/repositories/main/{SOURCE}"}]
        config = {"type": "Proxy", "proxy": {"routes": routes}}
        value = {"name": MIRROR, "storage": "main", "format": "npm", "visibility": "public", "config": config}
        api.ask("POST", "api/repository", json=value)
        api.create(INTO, "npm")
        self._token = admin_token(self.lab, api)
        self._key = api.ask("GET", "api/system/twin-key").json()["key"]

    def close(self) -> None:
        self.far.close()

    def mirror(self) -> None:
        """Publish a version there, and mirror it by a lock file."""
        waiting = [each for each in self.loads if not each.is_mirrored]
        load = waiting[0] if waiting else self._make()
        packages = {f"node_modules/{load.name}": {"version": load.version}}
        locks = [{"name": "package-lock.json", "text": json.dumps({"packages": packages})}]
        with self.lab.ledger.step("mirror", str(load)):
            place = f"api/repository/main%2F{MIRROR}/mirror?wait=2"
            answer = self.api().send("POST", place, json={"locks": locks})
            assert answer.status_code in (200, 202, 409), f"{load}: {answer.status_code} {answer.text[:300]}"
            if answer.status_code != 200:
                raise Idle
        found = answer.json()
        # What could not be stored is told: 500, since that is excused once a fault began.
        assert not found["problems"], f"{load}: 500 {found['problems']}"
        load.is_mirrored = True

    def write(self) -> None:
        """Write all that is mirrored into a bundle."""
        loads = [each for each in self.loads if each.is_mirrored]
        if not loads:
            raise Idle
        file = self.folder / f"{self.next()}.tar"
        with self.lab.ledger.step("write a bundle", file.name):
            url = self.rng.choice(self.lab.urls)
            run(self.lab, self.folder, url, self._token, ["bundle", "write", str(file), f"main/{MIRROR}"])
        for each in loads:
            each.bundle = file

    def read(self) -> None:
        """Read a bundle into the other repository."""
        waiting = [each for each in self.loads if each.bundle and not each.is_carried]
        if not waiting:
            raise Idle
        bundle = waiting[0].bundle
        body = {"kind": "bundle", "source": str(bundle), "into": f"main/{INTO}", "keys": [self._key]}
        with self.lab.ledger.step("read a bundle", str(bundle)):
            answer = self.api().send("POST", "api/import?wait=2", json=body)
            assert answer.status_code in (200, 202, 409), f"{bundle}: {answer.status_code} {answer.text[:300]}"
            if answer.status_code != 200:
                raise Idle
        assert not answer.json()["left_out_count"], f"{bundle}: 500 {answer.text[:300]}"
        for each in self.loads:
            each.is_carried = each.is_carried or each.bundle == bundle

    def check(self) -> Iterator[str]:
        return self._check(self.api(), self.rng.sample(self.loads, min(6, len(self.loads))))

    def finish(self) -> Iterator[str]:
        return self._check(self.api(), self.loads)

    def _make(self) -> Load:
        number = self.next()
        name, version = f"load{number}", "1.0.0"
        found = Kept.of(self.far.api.publish("npm", name, version, SOURCE))
        mirrored, carried = (
            Kept(
                found.path.replace(f"/{SOURCE}/", f"/{each}/"),
                found.sha256,
                found.index.replace(f"/{SOURCE}/", f"/{each}/"),
                found.listed,
            )
            for each in (MIRROR, INTO)
        )
        load = Load(name, version, mirrored, carried)
        self.loads.append(load)
        return load

    def _check(self, api: Publisher, loads: list[Load]) -> Iterator[str]:
        for each in loads:
            for is_there, kept in ((each.is_mirrored, each.mirrored), (each.is_carried, each.carried)):
                try:
                    lost = is_there and not kept.is_there(api)
                except AssertionError as error:
                    yield f"{each}: {told(error)}"
                    continue
                if lost:
                    yield f"{each}: {kept.path} was acknowledged, and is lost; {self.lab.ledger.history(str(each))}"
