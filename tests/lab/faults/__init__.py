"""
What a server loses when it is killed, stopped or cut from its power, again and again, under writers of all formats.

A round: writers (:mod:`.writers`) publish, delete and restore, and note in a ledger outside of the server
(:mod:`.ledger`) what they begin and what was acknowledged; then one fault comes (:mod:`.nemesis`); the next server is
compared with the ledger (:mod:`.checks`). ``bin/faults`` (:mod:`.run`) does rounds for some minutes, ends with the
checks of a stopped server, and writes the page of the book.
"""
