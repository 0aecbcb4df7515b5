"""The ``twistd pkgrepo`` plugin: its options and its service."""

from __future__ import annotations

import atexit
import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import IO, Any

from twisted.application.service import IService, MultiService
from twisted.logger import ILogObserver
from twisted.python.components import Componentized
from twisted.python.failure import Failure
from twisted.python.logfile import LogFile
from twisted.python.usage import Options as UsageOptions
from twisted.python.usage import UsageError

from pkgrepo.config import Config, ConfigError, read_config
from pkgrepo.http.tls import BadCertificate
from pkgrepo.process.allocator import keep_freed_buffers
from pkgrepo.process.log_output import make_observer
from pkgrepo.startup.announcements import announce_failure
from pkgrepo.startup.checks import endpoint_problem
from pkgrepo.storage.private_files import OWNER_ONLY

from .service import make_service

MOST_DESCRIPTORS = 65_536
GARBAGE = 20_000  # new objects before a collection; Python's 700 cost a tenth of the time of a cold install


class Options(UsageOptions):
    """The options after ``twistd pkgrepo``; twistd's own (pidfile, logfile, user) come before that word."""

    synopsis = "[options]"
    longdesc = "Settings come from the options, the environment (PKGREPO_SECTION__KEY), the file and the defaults."
    optParameters = [
        ["config", "c", None, "TOML file with settings; without it PKGREPO_CONFIG names one"],
        ["workers", "w", "1", "worker processes"],
    ]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.overrides: dict[str, object] = {}

    def opt_set(self, assignment: str) -> None:
        """One setting as KEY=VALUE, such as server.listen=tcp:9000; may be repeated."""
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set takes KEY=VALUE, not {assignment!r}")
        self.overrides[name.strip()] = value

    opt_s = opt_set

    def postOptions(self) -> None:
        """Refuse option values that this version does not support."""
        if self["workers"] != "1":
            raise UsageError("this version serves with one process: --workers takes 1 only")

    def read(self) -> Config:
        """The configuration. :raises UsageError: with every problem, a line each"""
        named = self["config"] or os.environ.get("PKGREPO_CONFIG")
        try:
            return read_config(Path(named) if named else None, environ=os.environ, overrides=self.overrides)
        except ConfigError as error:
            raise UsageError("the configuration has problems:\n  " + "\n  ".join(error.problems)) from None


class Daemon(MultiService):
    """The service as twistd runs it: it also has the log written as the configuration says."""

    def __init__(self, observer: ILogObserver | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._observer = observer

    def setServiceParent(self, parent: Any) -> None:
        """Join the application and set its log observer."""
        # twistd takes the log observer from the application, which is the parent here.
        if self._observer is not None and isinstance(parent, Componentized):
            parent.setComponent(ILogObserver, self._observer)
        super().setServiceParent(parent)  # type: ignore[no-untyped-call]


def makeService(options: Options) -> IService:
    """The whole server, ready to be started."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it, which twistd does when it chose one

    try:
        config = options.read()
    except UsageError as error:
        sys.exit(f"pkgrepo: {error}")
    _raise_descriptor_limit()
    keep_freed_buffers()
    file = _log_file(options.parent)
    observer = make_observer(file, style=config.log.format, level=config.log.level) if file else None
    _check_endpoints(config, reactor)
    daemon = Daemon(observer)
    try:
        server: Any = make_service(config, reactor)
    except (BadCertificate, MemoryError) as error:
        # pyOpenSSL needs writable and executable memory, which MemoryDenyWriteExecute= of a systemd unit forbids.
        sys.exit(f"pkgrepo: TLS cannot be set up: {error}")
    server.when_ready().addCallbacks(_settle, _end_in_failure, errbackArgs=(reactor,))
    # The default action of SIGHUP ends the process; a closed terminal or log rotation must not.
    threads: Any = reactor
    signal.signal(signal.SIGHUP, lambda *_: threads.callFromThread(server.reload))
    server.setServiceParent(daemon)
    return daemon


def _settle(_: object = None) -> None:
    """
    Exclude the objects of the program itself from Python's garbage collection, and collect less often.

    Otherwise each full collection traverses them all and blocks the reactor for 50 ms, after every change of a package
    with thousands of versions. Nearly all objects of a request are freed without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])


def _raise_descriptor_limit() -> None:
    """Raise the soft limit of file descriptors to the hard limit, up to ``MOST_DESCRIPTORS``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_endpoints(config: Config, reactor: Any) -> None:
    """Exit with a message if an address cannot be parsed, such as a socket that systemd did not pass."""
    for description in config.server.listen:
        problem = endpoint_problem(description, reactor)
        if problem is not None:
            sys.exit(f"pkgrepo: {problem}")


def _end_in_failure(failure: Failure, reactor: Any) -> None:
    """Stop the daemon after a failed start, with exit status 1."""
    announce_failure(failure)
    # twistd exits with 0 whenever the reactor ran and stopped; a service manager would see that as success.
    atexit.register(os._exit, 1)
    reactor.callWhenRunning(reactor.stop)


def _log_file(twistd: Any) -> IO[str] | None:
    """The log file named by twistd's own options; None if they select another kind of log."""
    if twistd["logger"] or twistd.get("syslog"):
        return None
    name = twistd["logfile"] or ("-" if twistd["nodaemon"] else "twistd.log")
    if name == "-":
        return sys.stdout
    # A device, such as /dev/stdout, keeps its mode.
    regular = os.path.isfile(name) or not os.path.exists(name)
    file: IO[str] = LogFile.fromFullPath(name, defaultMode=OWNER_ONLY if regular else None)
    return file
