"""
Uploaded archives, looked into without unpacking them to disk, and the budgets of what clients send.

Read ``source`` and ``limits`` first, then ``gunzip`` and ``tar``, or ``zips``. What an archive has to hold is for its
format to say.
"""
