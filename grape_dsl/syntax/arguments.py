"""The arguments of a statement, sorted by name, each used or reported."""

from __future__ import annotations

from collections.abc import Iterable

from grape_dsl.diagnostics import Diagnostic, Related, naming_hint
from grape_dsl.syntax import tree
from grape_dsl.syntax.literals import Report
from grape_dsl.syntax.not_supported import not_supported
from grape_dsl.syntax.source import SourceText

Argument = tree.Expression | tree.Keyed


class ArgumentReader:
    """Sorts arguments into those by place, `key = value` and `word(...)`.

    Args:
        what: the statement, for messages.
        keys: the names that may stand before `=`.
        calls: the words that may stand before brackets.
        later: names and words of the language that are not supported yet.
        places: how many leading arguments are taken by their place.
    """

    def __init__(
        self,
        source: SourceText,
        report: Report,
        what: str,
        given: tuple[Argument, ...],
        whole: tree.Node,
        *,
        keys: Iterable[str] = (),
        calls: Iterable[str] = (),
        later: Iterable[str] = (),
        places: int = 0,
    ) -> None:
        self.source, self.report, self.what, self.whole = source, report, what, whole
        self._keys, self._calls, self._later = tuple(keys), tuple(calls), frozenset(later)
        self.placed: list[tree.Expression] = []
        self.keyed: dict[str, tree.Expression] = {}
        self.called: dict[str, tree.Call] = {}
        self._seen: dict[str, tree.Node] = {}
        for argument in given:
            self._sort(argument, places)

    def _sort(self, argument: Argument, places: int) -> None:
        if isinstance(argument, tree.Keyed):
            self._take_key(argument)
        elif len(self.placed) < places and not self._seen:
            self.placed.append(argument)
        elif isinstance(argument, tree.Call) and isinstance(argument.function, tree.Name):
            self._take_call(argument, argument.function.text)
        else:
            names = ", ".join(self._keys)
            self.fault(
                "bad-argument", f"{self.what} takes no further value here", argument, f"options have names: {names}"
            )

    def _take_key(self, argument: tree.Keyed) -> None:
        name = argument.key.text
        if name in self._later:
            self.report(not_supported(self.source, argument, f"the option `{name}` of {self.what}"))
        elif name in self._calls:
            self.fault("bad-option", f"`{name}` is written with brackets", argument, f"write {name}(...)")
        elif name not in self._keys:
            self._unknown(name, argument.key)
        elif self._once(name, argument):
            self.keyed[name] = argument.value

    def _take_call(self, argument: tree.Call, name: str) -> None:
        if name in self._later:
            self.report(not_supported(self.source, argument, f"`{name}(...)` in {self.what}"))
        elif name in self._keys:
            self.fault("bad-option", f"`{name}` is written with `=`", argument, f"write {name} = ...")
        elif name not in self._calls:
            self._unknown(name, argument.function)
        elif self._once(name, argument):
            self.called[name] = argument

    def _unknown(self, name: str, node: tree.Node) -> None:
        hint = naming_hint(name, [*self._keys, *self._calls], "options")
        self.fault("unknown-option", f"{self.what} has no option {name!r}", node, hint)

    def _once(self, name: str, node: tree.Node) -> bool:
        earlier = self._seen.setdefault(name, node)
        if earlier is not node:
            place = Related("the first is here", self.source.span(earlier.start, earlier.end))
            where = self.source.span(node.start, node.end)
            self.report(Diagnostic("duplicate-option", f"{name!r} is given twice", where, "keep one", (place,)))
        return earlier is node

    def name_at(self, place: int, missing: str) -> tree.Name | None:
        """The name that stands at `place`; None, and a report, where there is none."""
        if len(self.placed) <= place:
            self.fault("missing-argument", f"{self.what} needs {missing}", self.whole)
            return None
        found = self.placed[place]
        if not isinstance(found, tree.Name):
            self.fault("bad-argument", f"{self.what} needs {missing} here", found)
            return None
        return found

    def fault(self, code: str, message: str, node: tree.Node, hint: str | None = None) -> None:
        self.report(Diagnostic(code, message, self.source.span(node.start, node.end), hint=hint))
