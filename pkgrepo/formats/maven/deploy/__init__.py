"""
Deploys of several artifacts at once: a bundle or a session in, all of its files visible together or none.

Read ``contents`` (a bundle, and whether it may be published), then ``storing`` and ``publishing`` (durable files,
releases), ``work`` (the states of a deployment), and ``requests`` and ``session_requests`` last.
"""
