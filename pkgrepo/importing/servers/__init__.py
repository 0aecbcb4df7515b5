"""
Sources of imports, one module a kind: registries by their address, other servers by their API, and folders.

``places`` reads bytes and documents of all of them; ``described`` joins what a server's own API knows to what its
clients' protocol lists.
"""
