"""
Events for other programs: the public form of the catalog's events, webhooks that get them, and the feed of them.

The event log (``event``) is the outbox: an event is inserted in the transaction of its change. L{sender} makes a
delivery of each event that a webhook wants, and sends it until the receiver has taken it.
"""
