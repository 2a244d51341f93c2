"""One event loop on a thread of its own: SGLang ties its sockets to the loop that uses them first."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    """A coroutine at work on the loop. Unlike an `asyncio` future it can be waited for after it was cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._ended: Future[asyncio.Task[T]] = Future()
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        loop.call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._ended.set_result)
        if self._cancelled:
            self._task.cancel()

    def cancel(self) -> None:
        self._cancelled = True
        if not self._ended.done() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """`callback` is called once the job has ended, on the loop's thread."""
        self._ended.add_done_callback(lambda _: callback())

    def result(self, stop: Callable[[], None] | None = None, patience: float | None = None) -> T:
        """Wait from another thread. An exception here (Ctrl-C) cancels the job and waits until it has ended.

        Args:
            stop: called then as well.
            patience: how long to wait then, in seconds; None: as long as it takes.
        """
        try:
            task = self._ended.result()
        except BaseException:
            if stop is not None:
                stop()
            self.cancel()
            self.join(patience)
            raise
        return task.result()

    async def wait(self) -> T:
        """Wait from another event loop; cancelling this cancels the job and waits until it has ended."""
        try:
            task = await asyncio.shield(asyncio.wrap_future(self._ended))
        except asyncio.CancelledError:
            await self.end()
            raise
        return task.result()

    async def end(self) -> None:
        """Cancel the job and wait until it has ended, however; for other event loops."""
        self.cancel()
        await asyncio.wrap_future(self._ended)

    def join(self, patience: float | None = None) -> bool:
        """Wait until the job has ended, however, or until `patience` seconds are over; returns whether it has."""
        concurrent.futures.wait([self._ended], timeout=patience)
        return self._ended.done()


class LoopThread:
    """Runs coroutines until closed. The thread is a daemon: a start-up that hangs does not keep the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="grape-engine", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> Job[T]:
        return Job(self._loop, work)

    def close(self, timeout: float = 10.0) -> None:
        """Stop the loop; what still runs on it is cancelled."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(timeout)

    def _end(self) -> None:
        async def cancel_all() -> None:
            others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=5)
            self._loop.stop()

        self._end_task = self._loop.create_task(cancel_all())
