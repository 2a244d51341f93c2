"""The engine's log: what SGLang prints, in this process and in its own, kept from standard output."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_TAIL_BYTES = 64 * 1024


class EngineLog:
    """A temporary file that takes the log; `close` removes it.

    Args:
        verbose: the log goes to standard error instead.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.path: Path | None = None
        if verbose:
            self._target = os.dup(2)
        else:
            self._target, name = tempfile.mkstemp(prefix="grape-engine-", suffix=".log")
            self.path = Path(name)

    @contextmanager
    def captured(self) -> Iterator[IO[str]]:
        """Everything that this process and its new children print goes to the log.

        Yields:
            standard error as it was, for progress.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        out, err = os.dup(1), os.dup(2)
        terminal = os.fdopen(os.dup(err), "w", buffering=1)
        try:
            os.dup2(self._target, 1)
            os.dup2(self._target, 2)
            yield terminal
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.close(out)
            os.close(err)
            terminal.close()
            self._take_over_logging()

    def _take_over_logging(self) -> None:
        """What SGLang logs in this process from now on."""
        handler = logging.StreamHandler() if self.path is None else logging.FileHandler(self.path)
        handler.setFormatter(logging.Formatter("[%(asctime)s] %(message)s"))
        logging.basicConfig(handlers=[handler], force=True)

    def tail(self, lines: int = 30) -> str:
        """The last `lines` lines; empty where they were shown already."""
        if self.path is None:
            return ""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - _TAIL_BYTES))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        os.close(self._target)
        if self.path is not None:
            self.path.unlink(missing_ok=True)
