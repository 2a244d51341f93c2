"""A page read back."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "img", "input", "hr"}
_HEADINGS = {"h1", "h2", "h3", "caption", "figcaption", "summary", "title"}


class Page(HTMLParser):
    """Args: html: refused with an AssertionError where elements are not closed in their order.

    Attributes:
        tags: every element with its attributes. headings: texts of headings, captions and the title of the page.
        rows: cells of all rows of all tables, text by text.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in _VOID:
            return
        if tag in _HEADINGS and "svg" not in self._open:
            self.headings.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-3:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if _HEADINGS & set(self._open) and "svg" not in self._open:
            self.headings[-1] += data
        if self.rows and {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data
