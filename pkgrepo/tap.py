"""What ``twistd pkgrepo`` takes and makes."""

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


class Options(UsageOptions):
    """The options behind ``twistd pkgrepo``; twistd's own (pidfile, logfile, user) stand before the word."""

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
        """Refuse what this version cannot do."""
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
        """Join the application, and hand it the log observer."""
        # twistd looks for the log observer on the application, which is what it gives us as the parent.
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
        # pyOpenSSL wants memory that is written and executed, which MemoryDenyWriteExecute= of a unit denies.
        sys.exit(f"pkgrepo: TLS cannot be set up: {error}")
    server.when_ready().addCallbacks(_settle, _end_in_failure, errbackArgs=(reactor,))
    # Left alone it would end the process: a terminal that goes away, or log rotation, must not.
    threads: Any = reactor
    signal.signal(signal.SIGHUP, lambda *_: threads.callFromThread(server.reload))
    server.setServiceParent(daemon)
    return daemon


def _settle(_: object = None) -> None:
    """
    Have Python's collector leave alone what the program consists of, which stays until the end.

    It would look through all of it in each full collection: 50 ms in which nobody is answered, after every change of a
    package of thousands of versions.
    """
    gc.collect()
    gc.freeze()


def _raise_descriptor_limit() -> None:
    """Let connections and files be as many as the system allows; the usual soft limit is for programs of the past."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_endpoints(config: Config, reactor: Any) -> None:
    """End here with a sentence when an address cannot even be parsed, such as a socket that systemd did not pass."""
    for description in config.server.listen:
        problem = endpoint_problem(description, reactor)
        if problem is not None:
            sys.exit(f"pkgrepo: {problem}")


def _end_in_failure(failure: Failure, reactor: Any) -> None:
    """Stop the daemon, since one that does not answer must not look alive; its exit status is 1."""
    announce_failure(failure)
    # twistd reports success for every reactor that ran and stopped, and a service manager would believe it.
    atexit.register(os._exit, 1)
    reactor.callWhenRunning(reactor.stop)


def _log_file(twistd: Any) -> IO[str] | None:
    """The file that twistd's own options mean for the log; None when they name a log of another kind."""
    if twistd["logger"] or twistd.get("syslog"):
        return None
    name = twistd["logfile"] or ("-" if twistd["nodaemon"] else "twistd.log")
    if name == "-":
        return sys.stdout
    # A device, such as /dev/stdout, keeps its mode.
    regular = os.path.isfile(name) or not os.path.exists(name)
    file: IO[str] = LogFile.fromFullPath(name, defaultMode=OWNER_ONLY if regular else None)
    return file
