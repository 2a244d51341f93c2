"""Halves of surrogate pairs: what a Python text can hold and UTF-8 cannot, and therefore no tokenizer takes."""

from __future__ import annotations


def lone_surrogate(text: str) -> str | None:
    """Says which half of a pair stands where in `text`, the first of them; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        return f"{code} at character {error.start + 1}, half of a surrogate pair, which UTF-8 cannot hold"
    return None
