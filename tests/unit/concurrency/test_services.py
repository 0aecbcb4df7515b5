"""Services: starting and stopping through the typed classes does what Twisted's own do."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.application.service import IService
from twisted.application.service import Service as TwistedService
from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from pkgrepo.concurrency.services import MultiService, Service


class Slow(Service):
    """Stops when it is told to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stopped: Deferred[None] = Deferred()

    def privilegedStartService(self) -> None:
        super().privilegedStartService()
        self.calls.append("privileged")

    def startService(self) -> None:
        super().startService()
        self.calls.append("start")

    def stopService(self) -> Deferred[Any]:
        assert super().stopService() is None
        self.calls.append("stop")
        return self.stopped


@pytest.mark.parametrize("service", [Service(), MultiService()], ids=["service", "multi"])
def test_a_service_has_the_interface_and_no_privileges_of_its_own(service: TwistedService) -> None:
    assert verifyObject(IService, service)
    service.privilegedStartService()
    assert not service.running
    service.startService()
    assert service.running


def test_a_parent_starts_its_services_and_waits_until_they_have_stopped() -> None:
    parent, child = MultiService(), Slow()
    parent.setName("parent")
    child.setServiceParent(parent)
    parent.privilegedStartService()
    parent.startService()
    ended = parent.stopService()
    assert child.calls == ["privileged", "start", "stop"]
    assert not ended.called
    child.stopped.callback(None)
    assert ended.called
    assert not parent.running
    assert not child.running


def test_a_parent_that_runs_starts_a_service_that_joins_it() -> None:
    parent, child = MultiService(), MultiService()
    parent.startService()
    child.setServiceParent(parent)
    assert child.running
    assert child.parent is parent
