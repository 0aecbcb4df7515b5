"""
Bytes and sockets: everything the server knows about HTTP, and nothing about packages.

Read ``channel`` first (the states of a connection), then ``request``, ``reading.body`` and ``answering.send``.
"""
