"""Commands about what comes and goes: stages, retention, pins, quotas, and the trash."""
