"""
The npm format: the registry that npm, pnpm, yarn and bun talk to.

``routes`` maps paths to methods. A publish goes through ``publish`` (body -> release), which calls ``indexing`` inside
the transaction; ``packument`` joins what ``indexing`` wrote into documents. Read ``names`` and ``semver`` first.
"""
