"""One event loop on a thread of its own: SGLang ties its sockets to the loop that uses them first."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from sglang_ext.driver.errors import EngineError

T = TypeVar("T")

# How long a cancelled job may take to end when the loop is closed.
CANCEL_SECONDS = 5.0
_CLOSED = "the engine was closed before this had ended; run it again on an engine that is running"


class Job(Generic[T]):
    """A coroutine at work on the loop. Unlike an `asyncio` future it can be waited for after it was cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._ended: Future[asyncio.Task[T] | EngineError] = Future()
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        loop.call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._end)
        if self._cancelled:
            self._task.cancel()

    def _end(self, how: asyncio.Task[T] | EngineError) -> None:
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # it ended or was given up before
            self._ended.set_result(how)

    def give_up(self, error: EngineError) -> None:
        """Count the job as ended by `error`, if it has not ended: its loop does not go on. For any thread."""
        self._end(error)

    def cancel(self) -> None:
        self._cancelled = True
        if not self._ended.done():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """`callback` is called once the job has ended, on the loop's thread or on the one that closes the loop."""
        self._ended.add_done_callback(lambda _: callback())

    def result(self, stop: Callable[[], None] | None = None, patience: float | None = None) -> T:
        """Wait from another thread. An exception here (Ctrl-C) cancels the job and waits until it has ended.

        Args:
            stop: called then as well.
            patience: how long to wait then, in seconds; None: as long as it takes.

        Raises:
            EngineError: the loop was closed before the job had ended.
        """
        try:
            how = self._ended.result()
        except BaseException:
            if stop is not None:
                stop()
            self.cancel()
            self.join(patience)
            raise
        return _outcome(how)

    async def wait(self) -> T:
        """Wait from another event loop; cancelling this cancels the job and waits until it has ended.

        Raises:
            EngineError: the loop was closed before the job had ended.
        """
        try:
            await self._until_ended()
        except asyncio.CancelledError:
            await self.end()
            raise
        return _outcome(self._ended.result())

    async def end(self) -> None:
        """Cancel the job and wait until it has ended, however; for other event loops. Cancelling this ends the wait."""
        self.cancel()
        await self._until_ended()

    async def _until_ended(self) -> None:
        # Not asyncio.wrap_future: who cancels that cancels the future that others wait for.
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop that waited is closed
                loop.call_soon_threadsafe(ended.set)

        self._ended.add_done_callback(tell)
        await ended.wait()

    def join(self, patience: float | None = None) -> bool:
        """Wait until the job has ended, however, or until `patience` seconds are over; returns whether it has."""
        concurrent.futures.wait([self._ended], timeout=patience)
        return self._ended.done()


class LoopThread:
    """Runs coroutines until closed. The thread is a daemon: a start-up that hangs does not keep the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closing = False
        self._open: set[Job[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="grape-engine", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._give_up()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> Job[T]:
        """Begin `work`; raises EngineError if the loop was closed."""
        with self._lock:
            if self._closing:
                work.close()
                raise EngineError(_CLOSED)
            job = Job(self._loop, work)
            self._open.add(job)
        job.add_done_callback(lambda: self._open.discard(job))
        return job

    def close(self, timeout: float = 10.0) -> None:
        """Stop the loop; what still runs on it is cancelled, and what does not end by that fails with EngineError.

        Args:
            timeout: how long to wait for that, in seconds.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(timeout)
        self._give_up()

    def _give_up(self) -> None:
        for job in list(self._open):
            job.give_up(EngineError(_CLOSED))

    def _end(self) -> None:
        async def cancel_all() -> None:
            others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=CANCEL_SECONDS)
            self._loop.stop()

        self._end_task = self._loop.create_task(cancel_all())


def _outcome(how: asyncio.Task[T] | EngineError) -> T:
    if isinstance(how, EngineError):
        raise how
    return how.result()
