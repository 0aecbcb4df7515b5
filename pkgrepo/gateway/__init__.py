"""
Between HTTP and the repositories, for all formats.

``root_app`` routes, ``mounts`` resolves the repository once, ``callers`` says who asks, and the format's handlers work
with ``services``. ``cached_reads`` answers before any routing what ``responses`` has kept.
"""
