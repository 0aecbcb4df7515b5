"""The sections of the settings, by subject: a class is a section, a field is a key."""
