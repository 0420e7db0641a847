"""Range sets against Python sets on a window of code points."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.core.regex import charset as cs

WINDOW = [*range(0, 30), *range(0xD7FA, 0xD802), *range(0xDFFE, 0xE005), *range(0x10FFF8, 0x110000)]
ENDS = st.sampled_from(WINDOW)
RANGES = st.lists(st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends))), max_size=6)


def members(charset: cs.CharSet) -> set[int]:
    return {c for c in WINDOW if any(low <= c <= high for low, high in charset)}


def scalars(ranges: list[tuple[int, int]]) -> set[int]:
    return {c for c in WINDOW if any(low <= c <= high for low, high in ranges) and not 0xD800 <= c <= 0xDFFF}


@settings(deadline=None)
@given(RANGES)
def test_normalise_keeps_the_scalar_values_in_order(ranges):
    charset = cs.normalise(ranges)
    assert members(charset) == scalars(ranges)
    assert all(a[1] + 1 < b[0] or b[0] == 0xE000 for a, b in itertools.pairwise(charset))


@settings(deadline=None)
@given(RANGES, RANGES)
def test_set_operations(first, second):
    a, b = cs.normalise(first), cs.normalise(second)
    everything = scalars([(0, cs.MAX_CODE_POINT)])
    assert members(cs.union(a, b)) == members(a) | members(b)
    assert members(cs.intersection(a, b)) == members(a) & members(b)
    assert members(cs.complement(a)) == everything - members(a)
    assert cs.complement(cs.complement(a)) == a


@settings(deadline=None)
@given(st.lists(RANGES, max_size=4))
def test_partition_separates_exactly_what_the_sets_tell_apart(lists):
    sets = [cs.normalise(ranges) for ranges in lists]
    segments, masks = cs.partition(sets)
    assert sum(high - low + 1 for low, high, _ in segments) == 0x110000 - 0x800
    assert len(set(masks)) == len(masks)
    for code_point in scalars([(0, cs.MAX_CODE_POINT)]):
        (name,) = [name for low, high, name in segments if low <= code_point <= high]
        expected = sum(1 << i for i, charset in enumerate(sets) if code_point in members(charset))
        assert masks[name] == expected
