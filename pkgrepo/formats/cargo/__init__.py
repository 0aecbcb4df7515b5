"""
Crates of Rust, as ``cargo`` publishes and resolves them: the sparse index and the web API of registries.

A crate is read by ``crate``, and described by a line of the index (``index``). ``changes`` writes, ``routes`` reads and
has the path table, and ``proxied`` has what comes from upstreams. The contracts are the Cargo book ("Registries") and
RFC 2789 (sparse index), 3139 (authentication) and 3143 (features2).
"""
