"""
Logins of people at directories: LDAP version 3 (RFC 4511), Active Directory among them.

A name and a password come from the password checker to L{directory}, which searches the person with the filters of
L{filters}, over a connection that L{servers} lends, and binds as the entry found. L{messages} reads what servers send.
"""
