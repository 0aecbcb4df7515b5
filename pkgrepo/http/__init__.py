"""
Bytes and sockets: everything the server knows about HTTP, and nothing about packages.

Read ``channel`` first (a connection's states), then ``request``, ``body`` and ``send`` (the one way an answer leaves).
"""
