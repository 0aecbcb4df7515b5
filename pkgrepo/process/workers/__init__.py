"""
Several processes that serve at the same addresses.

The master binds the sockets and serves nothing. Each worker is a whole server over the same catalog and storages, and
accepts at sockets of its own. Master and worker talk through a socket pair (``messages``); what workers tell each other
goes through the master (``peers``).
"""
