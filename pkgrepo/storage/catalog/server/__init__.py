"""Tables of the whole server: storages, repositories, settings, jobs, the audit log."""
