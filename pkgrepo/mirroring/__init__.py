"""
Mirrors: what lock files name is fetched through a repository, as its clients would fetch it.

A lock file (``locks``) says which files are wanted. The engine (``engine``) looks for each as a client does, with the
rules and the verification of the repository, at the places that ``paths`` finds, and compares it with the digests of
the lock file. ``mirrors`` starts it as a job.
"""
