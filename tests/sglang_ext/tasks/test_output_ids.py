"""The rule for borders inside tokens, and that streaming follows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grape_dsl.encoding import TextEncoder
from sglang_ext.tasks.output_ids import reader_ids, strip_ids
from sglang_ext.tasks.streaming_output import StreamingOutput

EOS = 2
STOPS = [
    "\n",
    "\n\n",
    "###",
    "##",
    "ab",
    "abc",
    "bcd",
    "🎉",
    "🎉🎊",
    "日本",
    "語",
    " end",
    "the end",
    "\ufffd",
    "  ",
    "e",
]
WORDS = ["foo", " ", "  ", "\n", "\n\n", "\t", "#", "##", "###", "a", "ab", "abc", "bcd", "d", "🎉", "🎊", "👩‍👩‍👧"]
WORDS += [
    "日本語",
    "日",
    "語",
    "é",
    "\u3000",
    "\ufffd",
    " the",
    " en",
    " end",
    "t",
    "h",
    "e",
    ".",
    "1",
    "\x85",
    "\u200b",
]
many = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))


def token_for(codec: TextEncoder, raw: bytes) -> list[int]:
    """Ids whose bytes are `raw`, which need not be UTF-8: taken out of characters that have these bytes alone."""
    found = {}
    for text in ("é", "日", "🎉", "ÿ", "\x80", "𐀀", "ힿ", "Ā"):
        ids = codec.encode(text)
        if len(ids) == len(text.encode()):
            found.update(zip(text.encode(), ids, strict=True))
    return [found[b] for b in raw if b in found]


@st.composite
def outputs(draw: st.DrawFn, codec: TextEncoder) -> list[int]:
    """Ids as a model may make them: text in any tokenization, bytes that are no UTF-8, special tokens."""
    ids: list[int] = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.integers(0, 6))
        if kind == 0:
            ids += token_for(
                codec, draw(st.binary(max_size=4)) + draw(st.sampled_from([b"", b"\xf0", b"\x9f", b"\xe6\x97"]))
            )
        elif kind == 1:
            ids += draw(st.lists(st.integers(0, 49151).filter(lambda i: i != EOS), max_size=4))
        else:
            ids += codec.encode("".join(draw(st.lists(st.sampled_from(WORDS), max_size=5))))
    return ids


def cut_like_the_engine(codec: TextEncoder, ids: list[int], stops: Sequence[str]) -> tuple[list[int], str | None]:
    """The output through the token that completes a stop string, and the first of `stops` that is complete there."""
    for k in range(1, len(ids) + 1):
        text = codec.decode(ids[:k])
        for stop in stops:
            if stop in text:
                return ids[:k], stop
    return ids, None


def streamed(stream: StreamingOutput, running: list[int], sizes: list[int], final: list[int], matched) -> list[int]:
    got, start = [], 0
    for size in sizes:
        got += stream.push(running[start : start + size])
        start += size
    return got + stream.finish(final, matched)


@many
@given(
    data=st.data(),
    stops=st.lists(st.sampled_from(STOPS), max_size=3),
    left=st.booleans(),
    right=st.booleans(),
    sizes=st.lists(st.integers(0, 6), max_size=40),
    closed=st.booleans(),
)
def test_streaming_gives_what_the_rule_gives(codec, data, stops, left, right, sizes, closed):
    ids = data.draw(outputs(codec))
    final, matched = cut_like_the_engine(codec, ids, stops)
    running = final if matched is None else final[:-1]
    if matched is None and closed:
        final, matched = [*final, EOS], EOS
    expected = strip_ids(reader_ids(final, matched, codec), left, right, codec)
    assert streamed(StreamingOutput(codec, stops, left, right), running, sizes, final, matched) == expected
    assert streamed(StreamingOutput(codec, stops, left, right), running, [1] * len(running), final, matched) == expected


@many
@given(data=st.data(), stop=st.sampled_from(STOPS), left=st.booleans(), right=st.booleans())
def test_the_value_has_the_text_that_the_rule_says(codec, data, stop, left, right):
    ids = codec.encode(data.draw(st.lists(st.sampled_from(WORDS), max_size=10).map("".join)))
    text = codec.decode(ids)
    value = text[: text.find(stop)] if stop in text else text
    got = reader_ids(ids, stop, codec)
    assert codec.decode(got) == value
    stripped = strip_ids(got, left, right, codec)
    value = value.lstrip() if left else value
    assert codec.decode(stripped) == (value.rstrip() if right else value)


def test_tokens_wholly_inside_pass_as_ids(codec):
    other = [codec.encode(c)[0] for c in "foo"]  # not how "foo" is encoded
    assert codec.encode("foo") != other
    assert reader_ids([*other, *codec.encode("\n")], "\n", codec) == other
    assert strip_ids([*codec.encode(" \n"), *other, *codec.encode("\n ")], True, True, codec) == other


def test_the_rest_of_a_cut_token_is_encoded(codec):
    (bar,) = codec.encode(" bar")
    foo = codec.encode("foo")
    assert reader_ids([*foo, bar], "r", codec) == [*foo, *codec.encode(" ba")]
    assert reader_ids([*foo, bar], "bar", codec) == [*foo, *codec.encode(" ")]
    assert strip_ids([bar, *foo], True, False, codec) == [*codec.encode("bar"), *foo]
    assert reader_ids([bar], "a", codec) == codec.encode(" b")
    (newlines,) = codec.encode("\n\n")
    assert reader_ids([*foo, newlines], "\n", codec) == foo
    assert strip_ids([newlines], True, False, codec) == []


def test_what_closed_the_output_is_left_out(codec):
    foo = codec.encode("foo")
    assert reader_ids([*foo, EOS], EOS, codec) == foo
    assert reader_ids([EOS], EOS, codec) == []
    assert reader_ids(foo, None, codec) == foo
    assert reader_ids([], None, codec) == []
    assert reader_ids([*foo, EOS], "<|im_end|>", codec) == foo  # a stop string that is a token's name
    assert reader_ids(codec.encode("###"), "###", codec) == []


def test_characters_over_tokens_stay_together(codec):
    sun = codec.encode("🎉")
    assert len(sun) > 1
    stream = StreamingOutput(codec, ["\n"])
    got = [stream.push([i]) for i in [*sun, *codec.encode("a")]]
    assert got == [[]] * (len(sun) - 1) + [sun, codec.encode("a")]


def test_a_lone_byte_at_the_end_is_part_of_the_output(codec):
    ids = [*codec.encode("a"), codec.encode("🎉")[0]]
    stream = StreamingOutput(codec, ["\n"], right=True)
    assert stream.push(ids) == ids[:1]
    assert stream.finish([*ids, EOS], EOS) == ids[1:]


def test_near_misses_are_released_at_the_end(codec):
    ids = [*codec.encode("x"), *codec.encode("the en")]
    stream = StreamingOutput(codec, ["the end", "the"], right=True)
    assert stream.push(ids) == ids[:1]
    stream = StreamingOutput(codec, ["the end"])
    assert stream.push(ids) == ids[:1]
    assert stream.push(codec.encode(".")) == [*ids[1:], *codec.encode(".")]
    assert stream.finish([*ids, *codec.encode(".")], None) == []


def test_of_two_stop_strings_the_longer_start_counts(codec):
    ids = codec.encode("x") + codec.encode("#") + codec.encode("##")
    stream = StreamingOutput(codec, ["##", "####"])
    assert stream.push(ids[:2]) == ids[:1]
    assert stream.finish(ids, "##") == []


def test_a_reader_without_stops_and_strip_waits_for_nothing(codec):
    ids = [*codec.encode("a \n"), codec.encode("🎉")[0]]
    assert StreamingOutput(codec).push(ids) == ids


def test_white_space_waits_only_for_readers_that_strip(codec):
    ids = codec.encode("foo") + codec.encode("\n\n")
    assert StreamingOutput(codec, ["###"]).push(ids) == ids
    assert StreamingOutput(codec, right=True).push(ids) == ids[:1]
    assert StreamingOutput(codec, left=True).push(ids) == ids


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True), (True, True)])
def test_an_output_of_white_space_is_empty_when_stripped(codec, left, right):
    ids = codec.encode(" \n\n \t")
    stream = StreamingOutput(codec, left=left, right=right)
    assert stream.push(ids) + stream.finish(ids, None) == []


def test_a_finish_that_does_not_fit_is_refused(codec):
    stream = StreamingOutput(codec)
    stream.push([5, 6])
    with pytest.raises(ValueError, match="does not continue"):
        stream.finish([5, 7], None)


def test_the_cost_of_an_id_does_not_grow_with_the_output(codec):
    ids = codec.encode("The quick brown fox jumps over the lazy dog, again and again. 日本語🎉 " * 400)
    calls = []

    class Counting:
        encode = staticmethod(codec.encode)

        def decode(self, some):
            calls.append(len(some))
            return codec.decode(some)

    stream = StreamingOutput(Counting(), ["\n\n", "Question:"], True, True)
    for i in ids:
        stream.push([i])
    assert max(calls) <= 16 and len(calls) <= 2 * len(ids) + 2
    calls.clear()
    stream.finish(ids, None)
    assert len(calls) <= 30
