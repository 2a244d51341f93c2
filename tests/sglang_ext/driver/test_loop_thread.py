"""Jobs on a loop of their own: cancelled twice, and left when the loop is closed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sglang_ext.driver import loop_thread
from sglang_ext.driver.errors import EngineError
from sglang_ext.driver.loop_thread import LoopThread


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopThread]:
    monkeypatch.setattr(loop_thread, "CANCEL_SECONDS", 0.2)
    thread = LoopThread()
    yield thread
    thread.close(5)


def raised(work: Callable[[], Any]) -> tuple[threading.Thread, list[BaseException]]:
    """Calls `work` on a thread, which does not keep the tests if it hangs; what it raises comes in the list."""
    errors: list[BaseException] = []

    def call() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, errors


@pytest.mark.parametrize("way", ["wait", "end"])
def test_a_second_cancel_ends_the_wait_and_not_the_job(loop: LoopThread, way: str) -> None:
    begun, cancelled, go = threading.Event(), threading.Event(), threading.Event()

    async def slow_to_end() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()
            while not go.is_set():
                await asyncio.sleep(0.01)

    job = loop.submit(slow_to_end())
    assert begun.wait(5)

    async def impatient() -> None:
        waiting = asyncio.create_task(getattr(job, way)())
        await asyncio.sleep(0.05)
        waiting.cancel()
        assert await asyncio.to_thread(cancelled.wait, 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, 5)

    asyncio.run(impatient())
    assert not job.join(0.05)  # it is not taken for ended
    thread, errors = raised(job.result)
    go.set()
    thread.join(5)
    assert not thread.is_alive() and isinstance(errors[0], asyncio.CancelledError)


async def stubborn() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


def test_a_job_that_does_not_end_fails_when_the_loop_is_closed(loop: LoopThread) -> None:
    job = loop.submit(stubborn())
    told = threading.Event()
    job.add_done_callback(told.set)
    result, errors = raised(job.result)
    wait, wait_errors = raised(lambda: asyncio.run(job.wait()))
    end, end_errors = raised(lambda: asyncio.run(job.end()))
    loop.close(5)
    for thread in (result, wait, end):
        thread.join(5)
        assert not thread.is_alive()
    assert told.is_set() and end_errors == []
    for error in (*errors, *wait_errors):
        assert isinstance(error, EngineError) and "closed before this had ended" in str(error)
    assert len(errors) == len(wait_errors) == 1
    job.cancel()  # the loop is gone


def test_jobs_fail_though_the_loop_is_blocked(loop: LoopThread) -> None:
    begun, go = threading.Event(), threading.Event()

    async def block() -> None:
        begun.set()
        go.wait(10)

    blocking = loop.submit(block())
    begun.wait(5)
    behind = loop.submit(asyncio.sleep(0))
    loop.close(0.1)
    for job in (blocking, behind):
        thread, errors = raised(job.result)
        thread.join(5)
        assert not thread.is_alive() and isinstance(errors[0], EngineError)
    go.set()


def test_nothing_begins_on_a_closed_loop(loop: LoopThread) -> None:
    loop.close(5)
    begin = time.monotonic()
    with pytest.raises(EngineError, match="closed"):
        loop.submit(stubborn()).result()
    assert time.monotonic() - begin < 1


def test_what_ends_in_time_is_only_cancelled(loop: LoopThread) -> None:
    job = loop.submit(asyncio.sleep(60))
    thread, errors = raised(job.result)
    loop.close(5)
    thread.join(5)
    assert not thread.is_alive() and isinstance(errors[0], asyncio.CancelledError)
