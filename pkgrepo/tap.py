"""The ``twistd pkgrepo`` plugin: its options and its service."""

from __future__ import annotations

import atexit
import os
import resource
import signal
import sys
from functools import partial
from pathlib import Path
from typing import IO, Any

from twisted.application.service import IService
from twisted.logger import ILogObserver
from twisted.python.components import Componentized
from twisted.python.failure import Failure
from twisted.python.logfile import LogFile
from twisted.python.usage import Options as UsageOptions
from twisted.python.usage import UsageError

from pkgrepo.concurrency.services import MultiService
from pkgrepo.config import MOST_WORKERS, Config, ConfigError, read_config
from pkgrepo.errors import PkgrepoError
from pkgrepo.process.log_output import make_observer
from pkgrepo.process.resources import (
    collect_no_garbage,
    keep_freed_buffers,
    keep_no_generated_sources,
    settle,
    usable_processors,
    use_steady_clock,
)
from pkgrepo.process.sd_notify import Notifier
from pkgrepo.process.workers.child import Outputs
from pkgrepo.process.workers.master import Master
from pkgrepo.process.workers.sockets import endpoint_problem as sockets_problem
from pkgrepo.small_files import OWNER_ONLY
from pkgrepo.startup.announcements import announce_failure, announce_start
from pkgrepo.startup.endpoints import endpoint_problem, with_backlog

MOST_DESCRIPTORS = 65_536


class Options(UsageOptions):
    """The options after ``twistd pkgrepo``; twistd's own (pidfile, logfile, user) come before that word."""

    synopsis = "[options]"
    longdesc = "Settings come from the options, the environment (PKGREPO_SECTION__KEY), the file and the defaults."
    optParameters = [
        ["config", "c", None, "TOML file with settings; without it PKGREPO_CONFIG names one"],
        ["workers", "w", None, "worker processes, as server.workers: a number, or auto for one on each processor"],
    ]

    optFlags = [["starter", None, "make the starter set of all formats: hosted, proxy and virtual repositories"]]

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
        """Make ``--workers`` and ``--starter`` settings."""
        if self["workers"] is not None:
            self.overrides["server.workers"] = self["workers"]
        if self["starter"]:
            self.overrides["bootstrap.starter"] = "all"

    def pin_file(self) -> None:
        """Have ``read`` find the file after the working directory has changed, too."""
        named = self["config"] or os.environ.get("PKGREPO_CONFIG")
        self["config"] = os.path.abspath(named) if named else None

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
        super().__init__()
        self._observer = observer

    def setServiceParent(self, parent: Any) -> None:
        """Join the application and set its log observer."""
        # twistd takes the log observer from the application, which is the parent here.
        if self._observer is not None and isinstance(parent, Componentized):
            parent.setComponent(ILogObserver, self._observer)
        super().setServiceParent(parent)


def makeService(options: Options) -> IService:
    """The whole server, or the master of several workers, ready to be started."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it, which twistd does when it chose one

    try:
        config = options.read()
    except UsageError as error:
        sys.exit(f"pkgrepo: {error}")
    use_steady_clock(reactor)
    raise_descriptor_limit()
    keep_freed_buffers()
    collect_no_garbage()
    keep_no_generated_sources()
    file = _log_file(options.parent)
    observer = make_observer(file, style=config.log.format, level=config.log.level) if file else None
    _check_endpoints(config, reactor)
    daemon = Daemon(observer)
    count = config.server.workers or _automatic_count(config, options.parent)
    server: Any = _make_server(config, reactor) if count == 1 else _make_master(options, config, count, file, reactor)
    server.when_ready().addCallbacks(lambda _: settle(), _end_in_failure, errbackArgs=(reactor,))
    # The default action of SIGHUP ends the process; a closed terminal or log rotation must not.
    threads: Any = reactor
    signal.signal(signal.SIGHUP, lambda *_: threads.callFromThread(server.reload))
    server.setServiceParent(daemon)
    return daemon


def _automatic_count(config: Config, twistd: Any) -> int:
    """One worker on each processor; one in all where there cannot be several."""
    confined = twistd is not None and twistd.get("chroot")  # what workers import later is outside
    if confined or any(sockets_problem(each) for each in config.server.listen):
        return 1
    return min(usable_processors(), MOST_WORKERS)


def _make_server(config: Config, reactor: Any) -> IService:
    # Programs that only read the options do not import the server, which takes half a second.
    from pkgrepo.http.tls import BadCertificate  # noqa: PLC0415
    from pkgrepo.service import make_service  # noqa: PLC0415

    try:
        return make_service(config, reactor)
    except BadCertificate as error:
        sys.exit(f"pkgrepo: TLS cannot be set up: {error}")
    except PkgrepoError as error:  # a library for the database is not installed
        sys.exit(f"pkgrepo: {error}")


def _make_master(options: Options, config: Config, count: int, file: IO[str] | None, reactor: Any) -> IService:
    for description in config.server.listen:
        problem = sockets_problem(description)
        if problem is not None:
            sys.exit(f"pkgrepo: {problem}")
    from pkgrepo.worker import preload, run  # noqa: PLC0415 - as above

    options.pin_file()
    options.overrides["server.workers"] = count  # workers share memory, and their number stays
    preload(config)
    settle()  # workers share what no collection writes to
    master: IService = Master(
        reactor,
        count=count,
        addresses=[with_backlog(each) for each in config.server.listen],
        run=partial(run, options.read),
        outputs=Outputs(printed=sys.stdout.buffer, logged=file),
        announce=lambda ready: announce_start(
            ready.addresses, config.bootstrap.admin.user, ready.password, folder=config.data.dir
        ),
        notifier=Notifier(os.environ, clock=reactor),
        grace_s=config.server.shutdown_grace_s,
    )
    return master


def raise_descriptor_limit() -> None:
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
