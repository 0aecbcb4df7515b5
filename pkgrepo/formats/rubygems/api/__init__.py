"""The JSON API: versions -> records -> answers, searches, and the dependencies that old versions of Bundler ask for."""
