"""Source text: a program's characters, and where in them something is."""

from __future__ import annotations

import codecs
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from grape_dsl.diagnostics import Diagnostic, DiagnosticError, Span

# Byte order marks of encodings that a program may not have; that of UTF-16LE begins the one of UTF-32LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)


@dataclass(frozen=True, slots=True)
class SourceText:
    """Decoded text with `\\n` line ends, and the path as the user gave it."""

    text: str
    file: str | None = None
    _line_starts: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts, position = [0], self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        object.__setattr__(self, "_line_starts", starts)

    @classmethod
    def of(cls, text: str, file: str | None = None) -> SourceText:
        """Text with any line ends, with or without a byte order mark."""
        return cls(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), file)

    def span(self, start: int, end: int) -> Span:
        """The span of characters `start` to `end` (left out)."""
        starts = self._line_starts
        line, end_line = bisect_right(starts, start), bisect_right(starts, end)
        return Span(self.file, start, end, line, start - starts[line - 1] + 1, end_line, end - starts[end_line - 1] + 1)

    def first_on_line(self, position: int) -> bool:
        """Whether only blanks stand before `position` on its line."""
        start = self._line_starts[bisect_right(self._line_starts, position) - 1]
        return not self.text[start:position].strip()


def read_source(path: str | Path) -> SourceText:
    """The text of a file.

    Raises:
        DiagnosticError: `file-missing`, `file-folder`, `file-unreadable`, `file-encoding` or `file-binary`.
    """
    file = str(path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise _refusal(file, "file-missing", "there is no such file", "check the path") from None
    except IsADirectoryError:
        raise _refusal(file, "file-folder", "this is a folder", "give the path of a .flow file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refusal(file, "file-unreadable", f"the file cannot be read: {reason}", None) from None
    return decode_source(data, file)


def decode_source(data: bytes, file: str) -> SourceText:
    """The text in `data`, which came from `file`.

    Raises:
        DiagnosticError: `file-encoding` or `file-binary`.
    """
    if (encoding := _wide_encoding(data)) is not None:
        how = f"save it as UTF-8 in your editor, or run `iconv -f {encoding} -t UTF-8 OLD.flow > NEW.flow`"
        raise _refusal(file, "file-encoding", f"the file is {encoding}, a program is UTF-8", how)
    if b"\0" in data:
        raise _refusal(file, "file-binary", "this is a binary file, not text", "give the path of a .flow file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"the file is not UTF-8: byte 0x{data[error.start]:02x} in line {line} does not fit"
        raise _refusal(file, "file-encoding", what, "save it as UTF-8") from None
    return SourceText.of(text, file)


def _wide_encoding(data: bytes) -> str | None:
    """The encoding of text in units of more than a byte, where its mark tells or its bytes do."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    if len(data) % 2 or b"\0" not in data:
        return None
    # A program is ASCII for the most part, in UTF-16 with a zero behind each letter or before it.
    encoding = "UTF-16LE" if data[1::2].count(0) > data[::2].count(0) else "UTF-16BE"
    return encoding if _is_text(data, encoding) else None


def _is_text(data: bytes, encoding: str) -> bool:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character.isspace() for character in text)


def _refusal(file: str, code: str, message: str, hint: str | None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, f"{file}: {message}", hint=hint)])
