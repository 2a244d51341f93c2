"""The inputs of runs: read from the command line and files, checked against the workflow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from grape_dsl.diagnostics import naming_hint
from grape_dsl.lone_surrogate import lone_surrogate
from grape_dsl.variables import VariableKind
from grape_dsl.workflow import Workflow
from sglang_ext.driver.errors import InputError


def complete_inputs(workflow: Workflow, given: Mapping[str, object], where: str = "") -> dict[str, str]:
    """The value of every InputVar: given, else its default.

    Args:
        where: names the source in messages, such as `runs.jsonl, line 3`.

    Raises:
        InputError: an unknown or missing input, or a value that is no text or that UTF-8 cannot hold; every
            finding is in the message.
    """
    known = {v.name: v for v in workflow.variables.values() if v.kind is VariableKind.INPUT}
    problems = []
    for name, value in given.items():
        if name not in known:
            problems.append(
                f"{name!r} is not an input of workflow {workflow.name}; {naming_hint(name, known, 'inputs')}"
            )
        elif not isinstance(value, str):
            problems.append(f"input {name!r} must be text, not {type(value).__name__}")
        elif fault := lone_surrogate(value):
            problems.append(f"input {name!r} has {fault}; write whole characters")
    for name, variable in known.items():
        if name not in given and (fault := lone_surrogate(variable.default or "")):
            problems.append(f"the default of input {name!r} has {fault}; write whole characters")
    missing = [name for name, v in known.items() if name not in given and v.default is None]
    if missing:
        problems.append(
            f"workflow {workflow.name} needs {'an input' if len(missing) == 1 else 'inputs'} that "
            f"{'is' if len(missing) == 1 else 'are'} not given: {', '.join(missing)}"
        )
    if problems:
        raise InputError("\n".join(f"{where}: {p}" if where else p for p in problems))
    return {name: str(given[name]) if name in given else variable.default or "" for name, variable in known.items()}


def read_option(option: str) -> tuple[str, str]:
    """`name=value` or `name=@file`; `name=@@x` is the text `@x`.

    Raises:
        InputError: no `=`, or a file that cannot be read.
    """
    name, equals, value = option.partition("=")
    if not equals or not name:
        raise InputError(f"--input takes name=value or name=@file, not {option!r}")
    if value.startswith("@@"):
        return name, value[1:]
    if value.startswith("@"):
        return name, read_text(Path(value[1:]), f"input {name!r}")
    return name, value


def read_options(options: Iterable[str]) -> dict[str, str]:
    """All `--input` options; raises InputError if one name is given twice."""
    found: dict[str, str] = {}
    for option in options:
        name, value = read_option(option)
        if name in found:
            raise InputError(f"--input {name} is given twice")
        found[name] = value
    return found


def read_objects(path: str, standard_input: Iterable[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """The inputs of many runs, each with its place for messages.

    Args:
        path: a `.json` file (one object, or a list of them), a `.jsonl` file, or `-` for JSON lines
            from `standard_input`.

    Raises:
        InputError: unreadable, not JSON, or not objects.
    """
    if path == "-":
        yield from _lines("standard input", standard_input)
    elif path.endswith(".jsonl"):
        # JSON lines end at line feeds alone: other characters that Python counts as line ends may stand in texts.
        yield from _lines(path, _as_written(Path(path), "--inputs").split("\n"))
    else:
        value = _json(path, read_text(Path(path), "--inputs"))
        many = isinstance(value, list)
        for number, item in enumerate(value if isinstance(value, list) else [value], 1):
            where = f"{path}, item {number}" if many else path
            yield where, _object(where, item)


def read_text(path: Path, what: str) -> str:
    """A file's text with line ends of any kind as `\\n`.

    Raises:
        InputError: the file cannot be read or is not UTF-8; the message names `what`.
    """
    return _as_written(path, what).replace("\r\n", "\n").replace("\r", "\n")


def _as_written(path: Path, what: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{what}: {path} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{what}: cannot read {path}: {error.strerror}") from error


def _lines(source: str, lines: Iterable[str]) -> Iterator[tuple[str, dict[str, object]]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{source}, line {number}"
            yield where, _object(where, _json(where, line))


def _json(where: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}") from error


def _object(where: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: inputs are a JSON object of name and text, not {type(value).__name__}")
    return value
