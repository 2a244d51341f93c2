"""TextEncoder: text to token ids that can never be special, in the middle of a prompt or at its start."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import AddedToken, Tokenizer

from grape_dsl.encoding.errors import EncodingError
from grape_dsl.lone_surrogate import lone_surrogate


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A special token found in text. It swallows white space at the sides that it strips."""

    id: int
    strips_left: bool
    strips_right: bool


class TextEncoder:
    """A private copy of a tokenizer, set up to encode pieces of a prompt. Safe to use from several threads.

    `leading_ids` is what the tokenizer itself puts in front of text.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer: Tokenizer = copy.deepcopy(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.leading_ids = self._find_leading_ids()
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = {
            token.content: SpecialToken(i, token.lstrip, token.rstrip) for i, token in added.items() if token.special
        }
        by_length = sorted(self._special, key=len, reverse=True)
        self._special_text = re.compile("|".join(map(re.escape, by_length)) or r"(?!)")
        # Some tokenizers treat the first text of a prompt differently. Behind an added token, which no
        # text can contain since it is random, a piece is encoded as in the middle.
        self._middle = secrets.token_hex(16)
        self._tokenizer.add_tokens([AddedToken(self._middle, special=False, normalized=False)])
        self._tokenizer.encode_special_tokens = True

    def encode(self, text: str, *, at_start: bool = False) -> list[int]:
        """The ids of `text`, in which special tokens are plain text. `at_start`: nothing stands before it.

        Raises:
            EncodingError: the text has half a surrogate pair.
        """
        if not text:
            return []
        if fault := lone_surrogate(text):
            raise EncodingError(f"a text of a prompt ({text[:40]!r}) has {fault}; replace it there")
        if at_start:
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        return list(self._tokenizer.encode(self._middle + text, add_special_tokens=False).ids[1:])

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of `ids`; special tokens show as their names unless skipped. Broken UTF-8 shows as U+FFFD."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special))

    def split_special(self, text: str) -> list[str | SpecialToken]:
        """`text` cut at its special tokens, for text that may bring them: the leftmost first, of these the longest."""
        parts: list[str | SpecialToken] = []
        start = 0
        for found in self._special_text.finditer(text):
            parts += [text[start : found.start()], self._special[found.group()]]
            start = found.end()
        parts.append(text[start:])
        return [part for part in parts if part != ""]

    def special_id(self, token: str | None) -> int | None:
        """The id of the special token with text `token`, if there is one."""
        found = self._special.get(token or "")
        return None if found is None else found.id

    def _find_leading_ids(self) -> list[int]:
        probe = self._tokenizer.encode("a", add_special_tokens=True)
        mask = probe.special_tokens_mask
        return list(probe.ids[: mask.index(0)]) if 0 in mask else []
