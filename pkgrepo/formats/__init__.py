"""
One room for each package format; none of them knows another.

All that other rooms ask about a format is a field of its L{pkgrepo.gateway.format.Format}: its protocol, its names and
who owns them, how it is proxied, mirrored from lock files and taken in from elsewhere, what the console shows of it.
"""
