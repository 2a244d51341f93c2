"""Options of a task or a header: from expressions to `Options`."""

from __future__ import annotations

from typing import Any

from grape_dsl.diagnostics import Diagnostic
from grape_dsl.option_rules import broken_rule
from grape_dsl.syntax import tree
from grape_dsl.syntax.arguments import ArgumentReader
from grape_dsl.syntax.literals import plain_text
from grape_dsl.task import Latency, Options, Slo, Timeout

VALUES = ("max_tokens", "temperature", "top_p", "stop", "seed", "logprobs")
CALLS = ("timeout", "slo")
LATER_OPTIONS = ("model", "retry", "ensure", "on_error")

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_options(given: ArgumentReader) -> Options:
    """The options among `given`. A value of a wrong type or out of range is reported and left out."""
    found: dict[str, Any] = {}
    for name in VALUES:
        node = given.keyed.get(name)
        if node is not None:
            value = _plain_value(given, node, f"`{name}`")
            if name == "stop" and isinstance(value, str):
                value = (value,)
            _keep(given, found, name, value, node)
    for name, call in given.called.items():
        if name in CALLS:
            _keep(given, found, name, _times(given, name, call), call)
    return Options(**found)


def _keep(given: ArgumentReader, found: dict[str, Any], name: str, value: object, node: tree.Node) -> None:
    if value is None:
        return  # reported
    rule = broken_rule(name, value)
    if rule is None:
        found[name] = value
    else:
        given.fault("bad-option", rule, node)


def _plain_value(given: ArgumentReader, node: tree.Expression, what: str) -> Any:
    """The value of a literal or of a list of literals; None, and a report, for any other expression."""
    if not isinstance(node, tree.List):
        return _scalar(given, node, what)
    items = [_scalar(given, item, f"each element of {what}") for item in node.items]
    return None if any(item is None for item in items) else tuple(items)


def _scalar(given: ArgumentReader, node: tree.Expression, what: str) -> Any:
    if isinstance(node, tree.Boolean):
        return node.value
    if isinstance(node, tree.Text):
        return plain_text(given.source, node, given.report)
    sign, number = (-1, node.operand) if isinstance(node, tree.Unary) and node.operator == "-" else (1, node)
    if isinstance(number, tree.Number):
        if number.unit:
            given.fault("bad-option", f"{what} takes no unit, found `{number.unit}`", node)
            return None
        return sign * number.value
    given.fault("bad-option", f"{what} must be written out: a number, a text, true or false", node)
    return None


def _times(given: ArgumentReader, name: str, call: tree.Call) -> Timeout | Slo | None:
    fields = ("run", "idle") if name == "timeout" else ("ttft", "tbt")
    inner = ArgumentReader(given.source, given.report, f"{name}(...)", call.arguments.items, call, keys=fields)
    times: dict[str, Latency] = {}
    for field, node in inner.keyed.items():
        latency = _latency(given, node, f"`{field}`", steps=name == "slo")
        if latency is None:
            return None
        times[field] = latency
    if len(inner.keyed) != len(call.arguments.items):
        return None  # reported
    if name == "slo":
        return Slo(times.get("ttft"), times.get("tbt"))
    limits = {field: latency.seconds for field, latency in times.items()}
    return Timeout(limits.get("run"), limits.get("idle"))


def _latency(given: ArgumentReader, node: tree.Expression, what: str, steps: bool) -> Latency | None:
    units = ["60ms", "1.5s", "10m", "2h"] + (["3x (decode steps)"] if steps else [])
    if isinstance(node, tree.Number):
        if node.unit in _SECONDS:
            return Latency(seconds=node.value * _SECONDS[node.unit])
        if node.unit == "x" and steps:
            return Latency(steps=float(node.value))
    where = given.source.span(node.start, node.end)
    found = given.source.text[node.start : node.end] if isinstance(node, tree.Number) else "something else"
    hint = "such as " + ", ".join(units)
    given.report(Diagnostic("bad-option", f"{what} must be a time with its unit, found {found}", where, hint=hint))
    return None
