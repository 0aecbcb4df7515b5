"""What comes in: a file and its checksums -> a release, and the description of an artifact that its POM gives."""
