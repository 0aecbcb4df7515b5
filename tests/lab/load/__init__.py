"""
Load that grows: many connections, logins, tags, referrers, versions and packages in one server, and what others feel.

``bin/faults --load [NAME...]`` prints figures; nothing here judges times. A small round of each is a test, so that the
scenarios keep running.
"""
