"""The wire contract: what one task tells the engine, in SGLang's `kv_hints` envelope.

A task is one generate request whose prompt may have holes. Its hint names the run, the task and the
prompt's segments; a segment is a row of token ids or a hole for another task's output.

The prompt is what the segments say. The request's own `input_ids`, which SGLang does not do without, are the ids of
the first segment, or the placeholder `[0]`; a request with any others is refused with status 400.
"""

from __future__ import annotations

import re
import reprlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

PROTOCOL_VERSION = "1"
ACTION_TYPE = "grape.task"
ACTION_VERSION = "1"
# Stands in the request where a prompt begins with a hole; SGLang wants at least one id.
PLACEHOLDER_ID = 0
_REQUEST_ID = re.compile(r"([0-9a-f]{32})\.([0-9]{5,})\.")


class HintError(ValueError):
    """A hint that cannot be honoured; the message says what, where and which rule."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


TokenId = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Known(_Model):
    """Ids that are known when the task is submitted."""

    ids: list[TokenId]


class Identity(_Model):
    """The output as it is."""

    kind: Literal["identity"] = "identity"


class Strip(_Model):
    """The output without white space at the sides named."""

    kind: Literal["strip"] = "strip"
    left: bool = True
    right: bool = True


class OutputHole(_Model):
    """The output of task `task`, streamed in chunks of `weight` tokens."""

    task: str
    transform: Annotated[Identity | Strip, Field(discriminator="kind")] = Identity()
    weight: int = Field(default=16, ge=1)

    @property
    def sides(self) -> tuple[bool, bool]:
        """Whether white space goes at the left and at the right."""
        if isinstance(self.transform, Strip):
            return self.transform.left, self.transform.right
        return False, False


class Timeouts(_Model):
    """Seconds from a complete prompt to the task's end, and from one token to the next; None: no limit."""

    run: float | None = Field(default=None, gt=0)
    idle: float | None = Field(default=None, gt=0)


class Latency(_Model):
    """A latency bound: `seconds`, or `steps` times the unloaded decode step; one of the two."""

    seconds: Positive | None = None
    steps: Positive | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Latency:
        if (self.seconds is None) == (self.steps is None):
            raise ValueError("a latency is given in seconds or in steps, one of the two")
        return self


class Slo(_Model):
    """Latency objectives: `ttft` from the complete prompt to the first token, `tbt` from one token to the next."""

    ttft: Latency | None = None
    tbt: Latency | None = None


def _kind(segment: Any) -> str:
    """Which of the two a segment is meant to be, so that an error speaks of that one alone."""
    hole = "task" in segment if isinstance(segment, Mapping) else isinstance(segment, OutputHole)
    return "task" if hole else "ids"


class TaskHint(_Model):
    """One task of a run.

    Args:
        run: 32 hex digits, random, so that no one can name another's run.
        index: the task's number in the run, from 0; `tasks` is how many the run has.
        readers: tasks that have a hole for this one's output.
        slo: latency objectives; None: the engine's own, if it has any.
    """

    run: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    task: Annotated[str, Field(min_length=1, max_length=200)]
    index: int = Field(ge=0)
    tasks: int = Field(ge=1)
    readers: list[str] = []
    segments: list[Annotated[Annotated[Known, Tag("ids")] | Annotated[OutputHole, Tag("task")], Discriminator(_kind)]]
    timeout: Timeouts = Timeouts()
    slo: Slo | None = None

    @property
    def holes(self) -> list[OutputHole]:
        return [segment for segment in self.segments if isinstance(segment, OutputHole)]

    @property
    def known_tokens(self) -> int:
        return sum(len(segment.ids) for segment in self.segments if isinstance(segment, Known))


def new_run_id() -> str:
    """128 random bits as 32 hex digits."""
    return secrets.token_hex(16)


def request_id(run: str, index: int) -> str:
    """The request id of a task: of one length and closed by a dot, so that none is a prefix of another."""
    return f"{run}.{index:05d}."


def read_request_id(rid: str) -> tuple[str, int] | None:
    """The run and the number of the task with this request id; None if it is no task's."""
    found = _REQUEST_ID.fullmatch(rid)
    return None if found is None else (found[1], int(found[2]))


def envelope(hint: TaskHint) -> dict[str, Any]:
    """The value of `kv_hints` for a task."""
    request = request_id(hint.run, hint.index)
    action = {
        "action_id": request,
        "action_type": ACTION_TYPE,
        "action_version": ACTION_VERSION,
        "payload": hint.model_dump(mode="json"),
    }
    return {"protocol_version": PROTOCOL_VERSION, "message_id": request, "actions": [action]}


def input_ids(segments: Sequence[Known | OutputHole]) -> list[int]:
    """The ids that go with the request itself: the first known segment, else a placeholder."""
    first = segments[0] if segments else None
    return list(first.ids) if isinstance(first, Known) and first.ids else [PLACEHOLDER_ID]


def check_input_ids(ids: Sequence[int], segments: Sequence[Known | OutputHole]) -> None:
    """Hold the request's own ids against its hint; raises HintError where they contradict it."""
    expected, found = input_ids(segments), list(ids)
    if found not in (expected, [PLACEHOLDER_ID]):
        first = "" if expected == [PLACEHOLDER_ID] else f"those of the first segment, {_shown(expected)}, or "
        raise HintError(
            f"input_ids: a task's prompt is what the segments of its hint say, and the request's own ids are {first}"
            f"the placeholder [{PLACEHOLDER_ID}]; got {_shown(found)}; put the whole prompt into the segments"
        )


def _shown(ids: list[int]) -> str:
    return f"{len(ids)} ids {reprlib.repr(ids)}"


def read_hint(actions: Sequence[tuple[str, str, Mapping[str, Any]]]) -> TaskHint | None:
    """The task among a request's hint actions, each (type, version, payload); None if there is none.

    Raises:
        HintError: another version, more than one task, or a payload outside the contract.
    """
    found = [(version, payload) for kind, version, payload in actions if kind == ACTION_TYPE]
    if not found:
        return None
    if len(found) > 1:
        raise HintError(f"a request carries one {ACTION_TYPE} action, this one carries {len(found)}")
    version, payload = found[0]
    if version != ACTION_VERSION:
        raise HintError(f"{ACTION_TYPE} version {version!r} is not known here; this engine speaks {ACTION_VERSION!r}")
    try:
        hint = TaskHint.model_validate(dict(payload))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "payload"
        raise HintError(f"{ACTION_TYPE} payload: {where}: {first['msg']}, got {first['input']!r:.80}") from None
    if any(hole.task == hint.task for hole in hint.holes):
        raise HintError(f"task {hint.task!r} has a hole for its own output")
    return hint
