"""Symbol: what a value of a run looks like while a workflow function is traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from grape_dsl.diagnostics import Diagnostic, DiagnosticError
from grape_dsl.template import Reference
from grape_dsl.workflow import Workflow

_IN_A_PROMPT = "pass the symbol to a task and write {{name}} of the task's parameter in its prompt"
_WHOLE = "pass the symbol to a task whole"
_PLAIN = "decide with plain Python values, which are known while the function is traced"


class Symbol:
    """The value that a variable will have. It can be passed to tasks, returned, and stripped.

    Anything that would need the value itself is refused with a DiagnosticError that says what to do.
    """

    __slots__ = ("_reference", "_workflow")

    def __init__(self, workflow: Workflow, reference: Reference):
        self._workflow = workflow
        self._reference = reference

    def strip(self) -> Symbol:
        """The value without white space at both ends."""
        return Symbol(self._workflow, Reference(self._reference.name, strip=True))

    def reference(self, workflow: Workflow) -> Reference:
        """The reference that a template of `workflow` holds for this symbol.

        Raises:
            DiagnosticError: the symbol belongs to another workflow.
        """
        if workflow is not self._workflow:
            raise _refused(
                "foreign-symbol",
                f"{self!r} belongs to workflow {self._workflow.name!r} and means nothing in {workflow.name!r}",
                "a workflow function uses its own parameters and what its own calls return",
            )
        return self._reference

    def __repr__(self) -> str:
        return f"<symbol {self._reference.name}>"

    def _refuse(self, construct: str, hint: str) -> NoReturn:
        raise _refused(
            "symbol-use", f"{self!r} stands for text that exists only in a run: {construct} cannot use it", hint
        )

    def __bool__(self) -> NoReturn:
        self._refuse("`if`, `while`, `and`, `or` and `not`", f"a condition on a value is not supported yet; {_PLAIN}")

    def __iter__(self) -> Iterator[NoReturn]:
        self._refuse("`for`, `*` and unpacking", f"a loop over a value is not supported yet; {_WHOLE}")

    def __len__(self) -> NoReturn:
        self._refuse("len()", f"the length of a value is not supported yet; {_PLAIN}")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse("`in`", f"a test of a value is not supported yet; {_PLAIN}")

    def __format__(self, spec: str) -> NoReturn:
        self._refuse("an f-string or format()", _IN_A_PROMPT)

    def __str__(self) -> NoReturn:
        self._refuse("str(), print() and `%`", _IN_A_PROMPT)

    def _compare(self, other: object) -> NoReturn:
        self._refuse("a comparison", f"a test of a value is not supported yet; {_PLAIN}")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare
    __hash__ = object.__hash__

    def _join(self, other: object) -> NoReturn:
        self._refuse("`+`, `*` and `%`", f"to join texts, {_IN_A_PROMPT}")

    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _join

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse("an index or a slice", f"parts of a value are not supported yet; {_WHOLE}")

    def _number(self) -> NoReturn:
        self._refuse("a number", f"typed values are not supported yet; {_WHOLE}")

    __int__ = __float__ = __index__ = _number

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(f"`.{name}`", f"fields and methods other than strip() are not supported yet; {_WHOLE}")


def _refused(code: str, message: str, hint: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, hint=hint)])
