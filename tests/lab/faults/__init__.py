"""
What servers lose when they are killed, stopped or cut from their power, again and again, under writers of all formats.

A round: jobs (:mod:`.writers`, :mod:`.jobs`) publish, delete and restore, and note in a ledger outside of the servers
(:mod:`.ledger`) what they begin and what was acknowledged; then one fault comes to what runs (:mod:`.engines`, made of
:mod:`.nemesis`); the servers after it are compared with the ledger (:mod:`.checks`). ``bin/faults`` (:mod:`.run`) does
rounds for some minutes, ends with the checks of what is stopped, and writes the page of the book.
"""
