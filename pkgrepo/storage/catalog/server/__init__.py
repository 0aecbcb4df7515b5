"""What belongs to the server as a whole: storages, repositories, settings, jobs, the audit log."""
