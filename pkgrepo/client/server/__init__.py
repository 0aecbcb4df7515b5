"""Commands on a server as a whole: what it does and did, storages, host names, events and their receivers."""
