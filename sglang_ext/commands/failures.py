"""What the runtime's commands say and return when something goes wrong."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from grape_dsl.cli import ExitCode
from sglang_ext.driver.errors import EngineError, InputError
from sglang_ext.embedded_model import EmbeddedModelError

INTERRUPTED = 130


@contextmanager
def reported() -> Iterator[None]:
    """Errors that a user can mend become a message on standard error and the exit code that says whose they are."""
    try:
        yield
    except InputError as error:
        say(str(error))
        raise SystemExit(ExitCode.USAGE) from None
    except EngineError as error:
        if error.log_tail:
            click.echo(error.log_tail, err=True)
        say(str(error))
        raise SystemExit(ExitCode.ENGINE) from None
    except EmbeddedModelError as error:
        say(str(error))
        raise SystemExit(ExitCode.ENGINE) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def answer_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: the processes that it started are ended."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell has started it in the background. Ctrl-C stays without effect, but asyncio takes no interrupt
        # where it is ignored.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def warn(message: str) -> None:
    """A warning on standard error."""
    click.echo(f"warning: {message}", err=True)


def say(message: str) -> None:
    """An error message on standard error, each line marked."""
    for line in message.splitlines():
        click.echo(f"error: {line}", err=True)
