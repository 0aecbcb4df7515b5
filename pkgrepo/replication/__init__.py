"""
Proxy repositories that follow a repository of another pkgrepo.

Its events are read (``source``) and become tasks, which renew documents, fetch files and evict what is gone there
(``follower``, by the ``copies`` of a format: ``files``, or those of images). ``service`` runs the followers in one
process at a time, ``status`` tells how far they are, and ``promotion`` makes a hosted repository of a proxy.
"""
