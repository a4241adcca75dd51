"""The same examples on every run; `--hypothesis-profile=search` looks for new ones, many."""

from hypothesis import settings

settings.register_profile("northbound", deadline=None, derandomize=True, database=None)
settings.register_profile("search", deadline=None, max_examples=20_000, database=None)
settings.load_profile("northbound")
