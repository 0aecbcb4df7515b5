"""The legacy index: lists of all gems and single gemspecs in Ruby's Marshal format, for old clients and searches."""
