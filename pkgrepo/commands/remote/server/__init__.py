"""What a server does and did: statistics, jobs, the audit log, and a live view."""
