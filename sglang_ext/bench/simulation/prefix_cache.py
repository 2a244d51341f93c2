"""The KV of one engine: a pool of tokens, and a tree of prompts' beginnings that stay until their room is needed."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

Span = tuple[str, int]
"""A stretch of a prompt: its key (equal keys, equal text) and its length in tokens."""


class Node:
    """A stretch of text behind the one of its parent; a child follows only where the whole stretch is there."""

    __slots__ = ("children", "key", "locks", "parent", "tokens", "used")

    def __init__(self, key: str, parent: Node | None) -> None:
        self.key = key
        self.parent = parent
        self.children: dict[str, Node] = {}
        self.tokens = 0
        self.locks = 0
        self.used = 0


class PrefixCache:
    """Args: capacity: tokens of KV in all.

    Attributes:
        private: tokens that requests hold outside of the tree.
        evictable: tokens of the tree that nobody holds.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.private = 0
        self.evictable = 0
        self.evicted = 0
        self._held = 0
        self._root = Node("", None)
        self._leaves: list[tuple[int, int, Node]] = []
        self._ticks = count(1)
        self._entries = count()

    @property
    def available(self) -> int:
        """Tokens that are free or can be evicted."""
        return self.capacity - self.private - self._held

    @property
    def used(self) -> int:
        """Tokens that requests hold, in the tree or outside of it."""
        return self.private + self._held

    def match(self, spans: Sequence[Span], most: int) -> tuple[int, Node]:
        """How many tokens of a prompt's beginning are there, up to `most`, and the last node that has some of them."""
        node, found = self._root, 0
        for key, length in spans:
            child = node.children.get(key)
            if child is None or found >= most:
                break
            found += min(child.tokens, length, most - found)
            node = child
            if child.tokens < length:
                break
        return found, node

    def lock(self, node: Node) -> None:
        """Keep a node and all before it."""
        tick = next(self._ticks)
        at: Node | None = node
        while at is not None:
            if at.locks == 0:
                self.evictable -= at.tokens
                self._held += at.tokens
            at.locks += 1
            at.used = tick
            at = at.parent

    def unlock(self, node: Node) -> None:
        """Undo one `lock`."""
        at: Node | None = node
        while at is not None:
            at.locks -= 1
            if at.locks == 0:
                self.evictable += at.tokens
                self._held -= at.tokens
                self._note_leaf(at)
            at = at.parent

    def alone(self, node: Node) -> int:
        """Tokens up to a node that only one request has locked."""
        total, at = 0, node
        while at.parent is not None and at.locks == 1:
            total, at = total + at.tokens, at.parent
        return total

    def publish(self, spans: Sequence[Span], upto: int, before: Node | None, private: int) -> Node:
        """Put the first `upto` tokens of a prompt into the tree, where those that are there already are kept once.

        Args:
            before: what the request has locked; the lock moves on to the returned node.
            private: how many of the tokens are the request's own; they are so no longer.
        """
        self.private -= private
        node, done = self._root, 0
        for key, length in spans:
            if done >= upto:
                break
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = Node(key, node)
            tokens = min(length, upto - done)
            if tokens > child.tokens:
                if child.locks:
                    self._held += tokens - child.tokens
                else:
                    self.evictable += tokens - child.tokens
                child.tokens = tokens
            node, done = child, done + tokens
        self.lock(node)
        if before is not None:
            self.unlock(before)
        return node

    def take(self, tokens: int) -> None:
        """Private tokens for a request, which must not be more than are available."""
        self.private += tokens
        self._evict(self.private + self._held + self.evictable - self.capacity)

    def _evict(self, tokens: int) -> None:
        """Drop what was used longest ago until `tokens` are free."""
        while tokens > 0:
            used, _, node = heapq.heappop(self._leaves)
            if node.locks or node.children or node.used != used or node.parent is None:
                continue
            tokens -= node.tokens
            self.evictable -= node.tokens
            self.evicted += node.tokens
            parent, node.parent = node.parent, None
            del parent.children[node.key]
            self._note_leaf(parent)

    def _note_leaf(self, node: Node) -> None:
        if node.parent is not None and not node.children and not node.locks:
            heapq.heappush(self._leaves, (node.used, next(self._entries), node))
