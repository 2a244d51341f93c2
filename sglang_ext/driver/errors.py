"""What can go wrong around a run, one class per kind of mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang_ext.driver.record import Record, RunError


class InputError(ValueError):
    """A run cannot start: inputs are missing, unknown or unreadable, or an option is not supported."""


class EngineError(RuntimeError):
    """The engine did not start, is not reachable, or lacks the plugin.

    Args:
        log_tail: the last lines of the engine's log, empty when there is none.
    """

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(message)
        self.log_tail = log_tail


class RequestRefused(Exception):
    """The engine refused one request; the run that it belongs to fails."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class RunFailedError(Exception):
    """A run failed. `record` holds what was reached, `error` names the task and the kind of failure."""

    def __init__(self, record: Record, error: RunError) -> None:
        super().__init__(error.text())
        self.record = record
        self.error = error
