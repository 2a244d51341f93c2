"""What values the options of a task may have, the same through every door."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from grape_dsl.task import Latency, Options, Slo, Timeout

_LARGEST_SEED = 2**63 - 1
_MOST_STOPS = 64


def faults(options: Options) -> Iterator[tuple[str, str]]:
    """Name of the option and broken rule, for every value out of its range or of a wrong type."""
    for name in Options.__slots__:
        value = getattr(options, name)
        rule = None if value is None else broken_rule(name, value)
        if rule is not None:
            yield name, rule


def broken_rule(name: str, value: object) -> str | None:
    """The rule that `value` breaks as option `name`, with what was received; None if it is fine."""
    rule = _RULES[name](value)
    return None if rule is None else f"{name} must be {rule}, found {_shown(value)}"


def _shown(value: object) -> str:
    if isinstance(value, Timeout | Slo):
        given = [name for name in value.__slots__ if getattr(value, name) is not None]
        return " and ".join(given) or "nothing"
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return repr(value)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _max_tokens(value: object) -> str | None:
    return None if _is_int(value) and value >= 1 else "an integer of at least 1"  # type: ignore[operator]


def _temperature(value: object) -> str | None:
    return None if _is_number(value) and value >= 0 else "a number of at least 0"  # type: ignore[operator]


def _top_p(value: object) -> str | None:
    return None if _is_number(value) and 0 < value <= 1 else "a number above 0, at most 1"  # type: ignore[operator]


def _stop(value: object) -> str | None:
    fine = isinstance(value, tuple) and 1 <= len(value) <= _MOST_STOPS and all(isinstance(s, str) and s for s in value)
    return None if fine else f"a text or a list of 1 to {_MOST_STOPS} texts, none of them empty"


def _seed(value: object) -> str | None:
    fine = _is_int(value) and 0 <= value <= _LARGEST_SEED  # type: ignore[operator]
    return None if fine else f"an integer from 0 to {_LARGEST_SEED}"


def _logprobs(value: object) -> str | None:
    fine = isinstance(value, bool) or (isinstance(value, int) and value >= 1)
    return None if fine else "true, false or an integer of at least 1"


def _timeout(value: object) -> str | None:
    if not isinstance(value, Timeout) or (value.run is None and value.idle is None):
        return "given as timeout(run = ..., idle = ...), with one of the two at least"
    fine = all(limit is None or (_is_number(limit) and limit > 0) for limit in (value.run, value.idle))
    return None if fine else "of times above 0"


def _slo(value: object) -> str | None:
    if not isinstance(value, Slo) or (value.ttft is None and value.tbt is None):
        return "given as slo(ttft = ..., tbt = ...), with one of the two at least"
    fine = all(bound is None or _is_latency(bound) for bound in (value.ttft, value.tbt))
    return None if fine else "of times, or multiples of the decode step, above 0"


def _is_latency(value: object) -> bool:
    if not isinstance(value, Latency) or (value.seconds is None) == (value.steps is None):
        return False
    amount = value.steps if value.seconds is None else value.seconds
    return amount is not None and _is_number(amount) and amount > 0


_RULES = {
    "max_tokens": _max_tokens,
    "temperature": _temperature,
    "top_p": _top_p,
    "stop": _stop,
    "seed": _seed,
    "logprobs": _logprobs,
    "timeout": _timeout,
    "slo": _slo,
}
