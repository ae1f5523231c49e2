"""Of a partition only a watermark is committed: no record before it is unfinished, in whatever order they end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redrive.transports.kafka.assigned import AssignedPartition

OFFSETS = st.lists(st.integers(0, 500), unique=True, max_size=60).map(sorted)


def assigned(start: int = 0) -> AssignedPartition:
    return AssignedPartition("orders", 0, start=start, suspect_until=0, span=100, ahead=100)


@given(offsets=OFFSETS, data=st.data())
def test_nothing_unfinished_is_before_the_watermark_and_everything_done_moves_it(
    offsets: list[int], data: st.DataObject
) -> None:
    partition = assigned()
    for offset in offsets:  # with gaps: transactions and compaction leave them
        assert partition.come(offset)
    left = list(offsets)
    for offset in data.draw(st.permutations(offsets)):
        partition.finish(offset)
        left.remove(offset)
        expected = left[0] if left else offsets[-1] + 1
        assert partition.watermark == expected
        assert partition.done_ahead == sum(each > expected and each not in left for each in offsets)


def test_a_record_before_one_that_came_is_not_taken_for_the_next() -> None:
    partition = assigned(7)
    assert [partition.come(offset) for offset in (7, 8, 7, 8, 9)] == [True, True, False, False, True]


def test_the_watermark_of_a_partition_of_which_nothing_came_is_where_it_began() -> None:
    assert assigned(42).watermark == 42
