"""What comes and goes: stages before a version is served, pins and retention while it is, the trash afterwards."""
