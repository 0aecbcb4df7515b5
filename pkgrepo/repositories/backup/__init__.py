"""
Backups: a copy of the catalog, and each stored blob once, in a folder or a bucket; kept generations, and checks.

``place`` is where they are, ``manifests`` what each consists of, ``writing`` makes one, ``reading`` finds one and
compares digests, ``runs`` does both by night and records the outcome.
"""
