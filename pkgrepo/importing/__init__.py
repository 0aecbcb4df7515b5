"""
Imports: packages of other registries and of folders, with their times, publishers, yanks, deprecations and tags.

A source (``items``) lists packages, and for each its files with what is known of them. The engine (``engine``) asks for
one package after the other, and keeps the journal; what is missing is fetched, verified, and published as any publish
does (``files``, ``maven_files``, ``images``). ``sources`` has a module for each kind, ``kinds`` is the list of them,
and ``importers`` starts imports as jobs.
"""
