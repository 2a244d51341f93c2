"""The KV pool and its tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sglang_ext.bench.simulation.prefix_cache import Node, PrefixCache

Locked = tuple[Node, list[tuple[str, int]]]


def publish(cache: PrefixCache, *spans: tuple[str, int]) -> Node:
    """A request that computes a whole prompt, and holds it."""
    total = sum(tokens for _, tokens in spans)
    found, node = cache.match(spans, total)
    cache.lock(node)
    cache.take(total - found)
    return cache.publish(spans, total, node, total - found)


def test_what_is_published_is_found_up_to_where_texts_part():
    cache = PrefixCache(1000)
    publish(cache, ("rules", 40), ("one", 10))
    assert cache.match([("rules", 40), ("one", 10)], 49)[0] == 49
    assert cache.match([("rules", 40), ("two", 10)], 49)[0] == 40
    assert cache.match([("other", 40)], 39)[0] == 0
    assert cache.available == 950


def test_a_stretch_can_be_there_in_part_and_grow():
    cache = PrefixCache(1000)
    node = publish(cache, ("out", 16))
    assert cache.match([("out", 40), ("end", 5)], 44)[0] == 16
    cache.unlock(node)
    node = publish(cache, ("out", 40), ("end", 5))
    assert cache.match([("out", 40), ("end", 5)], 44)[0] == 44
    assert cache.used == 45


def test_two_that_compute_the_same_keep_it_once():
    cache = PrefixCache(1000)
    spans = [("rules", 40)]
    nodes = [cache.match(spans, 40)[1] for _ in range(2)]
    for node in nodes:
        cache.lock(node)
        cache.take(40)
    assert cache.used == 80
    for node in nodes:
        cache.publish(spans, 40, node, 40)
    assert cache.used == 40


def test_the_longest_unused_goes_first():
    cache = PrefixCache(100)
    for name in ("a", "b", "c"):
        cache.unlock(publish(cache, (name, 30)))
    cache.unlock(publish(cache, ("a", 30)))
    cache.take(40)
    assert [cache.match([(name, 30)], 30)[0] for name in ("a", "b", "c")] == [30, 0, 30]
    assert cache.evicted == 30


def test_a_beginning_stays_as_long_as_something_stands_behind_it():
    cache = PrefixCache(100)
    held = publish(cache, ("rules", 40), ("one", 20))
    cache.unlock(publish(cache, ("rules", 40), ("two", 20)))
    assert (cache.available, cache.evictable) == (40, 20)
    cache.take(40)
    assert cache.match([("rules", 40), ("one", 20)], 60)[0] == 60
    cache.private -= 40
    cache.unlock(held)
    assert (cache.available, cache.evictable) == (100, 60)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), st.integers(1, 30), st.booleans()), max_size=40)
)
def test_accounts_balance(prompts):
    cache = PrefixCache(200)
    held: list[Node] = []
    for first, second, upto, release in prompts:
        spans = [(first, 12), (first + second, 18)]
        found, node = cache.match(spans, upto)
        cache.lock(node)
        if upto - found > cache.available:
            cache.unlock(node)
            continue
        cache.take(upto - found)
        assert 0 <= cache.used <= cache.capacity - cache.evictable
        held.append(cache.publish(spans, upto, node, upto - found))
        assert cache.match(spans, upto)[0] == upto
        if release:
            cache.unlock(held.pop(0))
    for node in held:
        cache.unlock(node)
    assert cache.used == 0
    assert cache.available == cache.capacity
