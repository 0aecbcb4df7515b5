"""The commands that talk to a server use no module that only POSIX systems have, nor anything of the server."""

import subprocess
import sys

# The library for the network is built for each system; pkgrepo's own modules must not import what others lack.
PROGRAM = """
import builtins, importlib, pkgutil, sys

POSIX = {"fcntl", "grp", "posix", "pwd", "pty", "resource", "syslog", "termios", "tty"}
imported = builtins.__import__

def of_pkgrepo(name, globals=None, *rest, **more):
    if name in POSIX and ((globals or {}).get("__name__") or "").startswith("pkgrepo"):
        raise ModuleNotFoundError(f"{globals['__name__']} imports {name}")
    return imported(name, globals, *rest, **more)

builtins.__import__ = of_pkgrepo
import pkgrepo.cli
import pkgrepo.client
for each in pkgutil.walk_packages(pkgrepo.client.__path__, "pkgrepo.client."):
    importlib.import_module(each.name)
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("pkgrepo.")}
print(sorted(rooms & {"assembly", "auth", "composition", "formats", "gateway", "http", "management", "process", "proxy",
                      "repositories", "service", "storage", "web"}))
"""


def test_the_client_is_imported_without_what_other_systems_lack():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
