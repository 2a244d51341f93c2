"""Outputs as they grow."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import given
from hypothesis import strategies as st

from grape_dsl.encoding import ChatEncoder
from grape_dsl.task import Options
from sglang_ext.driver.task_output import OutputReader, TextStream
from tests.sglang_ext.fake_engine import write_tokenizer


@cache
def encoder() -> ChatEncoder:
    return ChatEncoder.from_folder(write_tokenizer(Path(mkdtemp())))


TEXTS = st.text(alphabet="aE N\n漢é🍇\ufffd", max_size=20)


@given(TEXTS, st.lists(st.integers(1, 5), max_size=40), st.integers(0, 3))
def test_text_never_changes_and_joins_to_the_whole(text: str, sizes: list[int], cut: int) -> None:
    ids = encoder().text.encode(text)
    ids = ids[: len(ids) - cut]  # the end may fall inside a character
    stream, parts, at = TextStream(encoder().decode), [], 0
    for size in sizes:
        parts.append(stream.push(ids[at : at + size]))
        at += size
        assert encoder().decode(ids).startswith("".join(parts)) or cut
    parts.append(stream.push(ids[at:], last=True))
    assert "".join(parts) == encoder().decode(ids)


@given(TEXTS, st.sampled_from(["EN", "\n", "漢a"]), st.booleans(), st.booleans())
def test_stop_strings_never_appear(text: str, stop: str, left: bool, right: bool) -> None:
    whole = text.split(stop)[0] + stop
    ids = encoder().text.encode(whole)
    output = OutputReader(encoder()).output(Options(stop=(stop,)))
    news = [output.take([i], None) for i in ids[:-1]]
    value = whole[: whole.index(stop)]
    assert value.startswith("".join(text for _, text in news))
    news.append(output.take(ids[-1:], {"type": "stop", "matched": stop}))
    assert "".join(text for _, text in news) == output.text == value
    assert [i for new, _ in news for i in new] == output.ids == encoder().text.encode(value)
    stripped = value.lstrip() if left else value
    assert encoder().decode(output.reader_ids(left, right)) == (stripped.rstrip() if right else stripped)
