"""What a fork of a master has of it, and what not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, signal, sys
from twisted.application.reactors import installReactor
installReactor(sys.argv[1])
from twisted.internet import reactor
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger, globalLogBeginner, globalLogPublisher
from pkgrepo.process.workers.fork import Fork

def run():
    if sys.argv[2] == "stopped":
        signal.pause()
    blocked = len(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    reactor.callLater(0, reactor.stop)
    reactor.run()
    Logger().info("nobody reads this")
    read, write = os.pipe()
    os.close(read)
    try:
        os.write(write, b"x")
    except BrokenPipeError as error:
        unread = error.strerror
    print(json.dumps({
        "blocked": blocked,
        "null": [each for each in range(32) if os.path.realpath(f"/proc/self/fd/{each}") == os.devnull],
        "unread": unread,
        "name": open("/proc/self/comm").read(),
        "notify": "NOTIFY_SOCKET" in os.environ,
        "told": os.environ["TOLD"],
    }))
    if sys.argv[2] == "fails":
        raise ValueError("it failed")
    return 7

class Protocol(ProcessProtocol):
    def __init__(self):
        self.received = b""
    def childDataReceived(self, descriptor, data):
        self.received += data
    def processEnded(self, reason):
        print(json.dumps({
            "blocked by master": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "signal": reason.value.signal,
            "status": reason.value.exitCode,
            **json.loads(self.received or "{}"),
        }))
        reactor.stop()

def begin():
    pid = Fork(reactor, Protocol(), run, {0: null, 1: "r", 2: 2, 3: channel}).pid
    if sys.argv[2] == "stopped":
        os.kill(pid, signal.SIGTERM)

null, channel = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)
others = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
globalLogBeginner.beginLoggingTo([lambda event: sys.__stdout__.write("logged\\n") if "nobody" in str(event) else None],
    redirectStandardIO=False)
signal.signal(signal.SIGHUP, lambda *_: None)
reactor.callWhenRunning(begin)
reactor.run()
"""


@pytest.mark.parametrize("reactor", ["epoll", "poll", "select", "asyncio"])
def test_a_fork_has_its_own_descriptors_reactor_and_log(reactor: str) -> None:
    done = run(reactor, "returns")
    assert (done.returncode, done.stderr) == (0, "")
    [line] = done.stdout.splitlines()  # what the master wrote before is not written twice
    found = json.loads(line)
    assert found["status"] == 7
    assert (found["blocked"], found["blocked by master"]) == (0, 0)
    assert found["unread"] == "Broken pipe"  # an error, and not the end of the process by SIGPIPE
    assert found["name"] == "pkgrepo-worker\n"
    assert found["told"] == "yes"
    assert not found["notify"]
    assert found["null"] == [0, 3]  # those of the master are closed


def test_a_fork_that_fails_ends_with_its_traceback() -> None:
    done = run("epoll", "fails")
    assert "ValueError: it failed" in done.stderr
    assert json.loads(done.stdout)["status"] == 1


def test_a_fork_that_is_stopped_at_once_ends() -> None:
    done = run("epoll", "stopped")
    found = json.loads(done.stdout)
    assert (found["signal"], found["status"], done.stderr) == (15, None, "")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "NOTIFY_SOCKET": "/run/x", "TOLD": "yes"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
