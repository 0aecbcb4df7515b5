"""Lists directories: pages of names from the catalog -> HTML that Ivy and Gradle parse, or JSON."""
