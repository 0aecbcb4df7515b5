"""
Upstream registries for tests of proxies: real HTTP servers on 127.0.0.1 that do what a test tells them.

Each runs in a thread of its own with its own event loop, so that it serves a server in the test's reactor, blocking
clients, and servers in other processes in the same way. L{server} serves documents and scripted faults; L{npm},
L{python} and L{container} are registries on top of it; L{faults} is the catalogue of faults.
"""
