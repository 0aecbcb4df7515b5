"""
Mirrors: what lock files name is fetched through a repository, as its clients would fetch it.

How lock files are read, and where a repository has what they name, is said by the format (``Format.mirrored``), and
``pkgrepo.gateway.mirrored`` reads them. The engine (``engine``) looks for each file as a client does, with the rules
and the verification of the repository, and compares it with the digests of the lock file. ``mirrors`` starts it as a
job.
"""
