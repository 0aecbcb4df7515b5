"""The budget of values in JSON from clients."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.json_limits import check_value_count


@pytest.mark.parametrize("text", [b"[1,2,3]", b'[{"a":1},{}]', b"[[[[]]]]", b'{"a":1,"b":[1],"c":""}'])
def test_values_are_counted(text: bytes) -> None:
    check_value_count(text, 4, "it")
    with pytest.raises(Invalid, match="it has more than 2 values"):
        check_value_count(text, 2, "it")
