"""Lanes and token buckets, step by step, without a clock."""

from __future__ import annotations

import asyncio

import pytest

from cloister.hub.gateway._lanes import Lane, LanePlace, TokenBuckets


def joined(lane: Lane, key: str | None) -> LanePlace:
    place = lane.join(key)
    assert isinstance(place, LanePlace)
    return place


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_lane_has_so_many_at_work_and_so_many_in_the_line() -> None:
    async def walk() -> None:
        lane = Lane(at_once=1, waiting=2, each_at_once=1, each_waiting=2)
        first, second, third = (joined(lane, None) for _ in range(3))
        await settle()
        assert (first.turn.done(), second.turn.done(), third.turn.done()) == (True, False, False)
        assert lane.refusal(None) == "lane" == lane.join(None)
        lane.leave(second)
        assert lane.refusal(None) is None
        lane.leave(first)
        await settle()
        assert third.turn.done(), "whoever waits longest goes first, and who left is not waited for"
        lane.leave(third)
        await settle()
        assert joined(lane, None).is_working

    asyncio.run(walk())


def test_one_key_gets_its_share_and_others_go_past_it() -> None:
    async def walk() -> None:
        lane = Lane(at_once=2, waiting=10, each_at_once=1, each_waiting=2)
        places = [joined(lane, "ada") for _ in range(3)]
        assert lane.refusal("ada") == "share" == lane.join("ada")
        bob = joined(lane, "bob")
        await settle()
        assert [place.turn.done() for place in (*places, bob)] == [True, False, False, True]
        lane.leave(bob)
        await settle()
        assert [place.turn.done() for place in places] == [True, False, False]
        lane.leave(places[0])
        await settle()
        assert [place.turn.done() for place in places] == [True, True, False]
        for place in places:
            lane.leave(place)
        assert joined(lane, "ada").is_working

    asyncio.run(walk())


def test_a_place_can_be_given_up_twice_and_its_turn_can_come_too_late() -> None:
    async def walk() -> None:
        lane = Lane(at_once=1, waiting=1, each_at_once=1, each_waiting=1)
        place = joined(lane, "ada")
        place.turn.cancel()
        await settle()
        lane.leave(place)
        lane.leave(place)
        assert joined(lane, "ada").is_working

    asyncio.run(walk())


def test_a_bucket_gives_a_burst_and_then_its_rate() -> None:
    moment = [0.0]
    buckets = TokenBuckets(burst=3, rate=0.5, clock=lambda: moment[0])
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    assert buckets.take("b"), "keys have their own"
    moment[0] = 1.9
    assert not buckets.take("a")
    moment[0] = 2.0
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    moment[0] = 1_000.0
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("keys", [1, 2])
def test_buckets_forget_the_keys_used_longest_ago(keys: int) -> None:
    buckets = TokenBuckets(burst=1, rate=0.0, keys=keys)
    assert buckets.take("a")
    assert buckets.take("b")
    assert buckets.take("a") == (keys == 1)
