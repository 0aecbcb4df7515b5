"""
The compact index, which Bundler and RubyGems since 3.4 read: ``info`` of one gem, joined from a line for each version;
``versions``, to which each change appends a line; and ``names``. ``indexing`` writes the lines with each change.
"""
