"""Programs in Python on the command line: a file or a module that holds a workflow."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from grape_dsl.cli import missing_extra
from grape_dsl.diagnostics import Diagnostic, DiagnosticError, Span, naming_hint
from grape_dsl.workflow import Workflow

DEFAULT_NAME = "workflow"


class ProgramError(ValueError):
    """A Python file or module that cannot be read, or that holds no such workflow."""


def python_workflow(name: str) -> Workflow | None:
    """The workflow that FILE.py, FILE.py:NAME, MODULE or MODULE:NAME names; None where `name` is no such thing.

    Raises:
        ProgramError: the file or module cannot be read, or holds no such workflow.
        DiagnosticError: the program in it has errors, or its Python code fails: `python-error`.
        ImportError: it needs a package that one of Grape's extras brings.
    """
    path, _, attribute = name.rpartition(":") if not Path(name).exists() and ":" in name else (name, "", "")
    if not (path.endswith(".py") or attribute or _is_module(path)):
        return None
    try:
        module = _module(path)
    except (ProgramError, DiagnosticError):
        raise
    except Exception as error:
        if isinstance(error, ImportError) and missing_extra(error):
            raise
        raise DiagnosticError([_failure(error, path)]) from error
    return _workflow(module, path, attribute or None)


def _is_module(name: str) -> bool:
    return not Path(name).exists() and all(part.isidentifier() for part in name.split("."))


def _module(path: str) -> ModuleType:
    file = Path(path)
    sys.path.insert(0, str(file.parent.resolve() if path.endswith(".py") else Path.cwd()))
    if not path.endswith(".py"):
        try:
            return importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path.split(".")[0] and error.name != path:
                raise
            raise ProgramError(f"there is neither a file nor a Python module {path!r}") from error
    if not file.is_file():
        raise ProgramError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def _failure(error: Exception, path: str) -> Diagnostic:
    """What a program's code raised, at the line of the program that led to it, else where it was raised."""
    if isinstance(error, SyntaxError) and error.filename:
        file, line, message = error.filename, error.lineno or 1, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        frame = next((f for f in reversed(frames) if Path(f.filename) == Path(path)), frames[-1])
        file, line, message = frame.filename, frame.lineno or 1, str(error)
    span = Span(file, 0, 0, line, 1, line, 1)
    return Diagnostic(
        "python-error",
        f"the program's Python code fails: {type(error).__name__}{': ' if message else ''}{message}",
        span,
        f"`python {path}` shows the whole way to it" if path.endswith(".py") else None,
    )


def _workflow(module: ModuleType, path: str, name: str | None) -> Workflow:
    """The workflow called `name`; without a name the one called `workflow`, else the only one."""
    found = {other: value for other, value in vars(module).items() if isinstance(value, Workflow)}
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if (name or DEFAULT_NAME) in found:
        return found[name or DEFAULT_NAME]
    if name is None:
        has = f"has several: {', '.join(found)}" if found else "has none"
        raise ProgramError(f"{path} must hold one workflow, or one that is called {DEFAULT_NAME!r}; it {has}")
    if hasattr(module, name):
        raise ProgramError(f"{name} in {path} is no Workflow but {type(getattr(module, name)).__name__}")
    raise ProgramError(f"{path} has no workflow {name!r}; {naming_hint(name, found, 'workflows')}")
