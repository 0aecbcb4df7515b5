"""
Deploys of several artifacts at once: a bundle or a session in, all of its files visible together or none.

Read ``bundle`` (the entries of an archive), ``contents`` and ``validation`` (what is in them, and whether it may be
published), then ``storing`` and ``publishing`` (durable files, releases), ``work`` (one deployment from its first byte
to its end), and ``requests`` and ``session_requests`` last.
"""
