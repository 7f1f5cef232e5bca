"""Lists that one test goes through tell all entries that fail."""

from __future__ import annotations

import pytest

from entries import check_each, part


def is_even(number: int) -> None:
    """Fails for odd numbers."""
    if number == 5:
        pytest.fail("five")
    assert number % 2 == 0, "it is odd"


def test_all_that_fails_is_told() -> None:
    check_each([0, 2, 4], is_even)
    with pytest.raises(pytest.fail.Exception) as caught:
        check_each([0, 1, 4, 5, 7], is_even, lambda number: f"number {number}")
    first, *told = str(caught.value).splitlines()
    assert first == "3 of 5 entries fail:"
    found = [line for line in told if line.startswith("number ")]
    assert [line.split(":")[0] for line in found] == ["number 1", "number 5", "number 7"]
    assert "test_entries.py:" in found[0] and "it is odd" in found[0] and "five" in found[1]


def test_nothing_to_check_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="nothing to check"):
        check_each([], is_even)


def test_parts_are_the_whole() -> None:
    entries = [*range(10)]
    assert sorted(entry for number in range(4) for entry in part(entries, number, 4)) == entries
