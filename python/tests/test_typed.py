"""The typed examples run."""

import typed_examples
from conftest import TINY


def test_they_run():
    location, busy_time = typed_examples.busiest(TINY)
    assert busy_time == 500_000 and isinstance(location, str)
    assert "start" in typed_examples.names(TINY)
    assert typed_examples.held(TINY) and typed_examples.slices(TINY) == 12
