"""A run's control flow, against an engine without a model."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grape_dsl.task import Timeout
from grape_dsl.variables import InputVar, OutputVar
from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_client import Chunk, GenerateRequest
from sglang_ext.driver.errors import EngineError, InputError, RequestRefused, RunFailedError
from sglang_ext.driver.events import RunFailed, RunFinished, RunStarted, TaskFailed, TaskFinished, TaskSubmitted, Token
from sglang_ext.driver.record import ErrorKind
from tests.sglang_ext.fake_engine import FakeEngine, Reply

Script = Callable[[str], Reply | str]


def answers(prompt: str) -> Reply | str:
    if "[rewrite]" in prompt:
        return Reply("héat\n", stop="\n")
    return " It is so. " if "[reply]" in prompt else "yes \n"


@contextmanager
def running(path: Path, script: Script = answers, **options: Any) -> Iterator[tuple[Engine, FakeEngine]]:
    fake = FakeEngine(path, script)
    with Engine(client=fake, **options) as engine:
        yield engine, fake
    assert fake.closed and not fake.live


@pytest.mark.parametrize("streaming", ["on", "off"])
def test_outputs_and_record(tokenizer_path: Path, chain: Workflow, streaming: Any) -> None:
    with running(tokenizer_path, streaming=streaming) as (engine, fake):
        record = engine.run(chain, question="why?")
    assert record.outputs == {
        "answer": " It is so. ",
        "verdict": "yes \n",
        "report": " It is so.  / yes (why?)",
    }
    assert list(record.tasks) == ["rewrite", "reply", "check"]
    assert record.tasks["rewrite"].output_text == "héat"
    assert [task.finish_reason for task in record.tasks.values()] == ["stop"] * 3
    assert record.run.status == "ok" and record.run.error is None and record.run.settings.streaming == streaming
    assert record.run.id == fake.requests[0].rid[:32] and record.run.start <= record.run.end
    for task in record.tasks.values():
        assert task.first_token_s is not None and task.end_s is not None
        assert 0 <= task.first_token_s <= task.end_s <= record.run.end - record.run.start
    assert fake.aborts == []


def test_both_ways_give_the_engine_the_same_prompts(tokenizer_path: Path, chain: Workflow) -> None:
    prompts = []
    for streaming in ("on", "off"):
        with running(tokenizer_path, streaming=streaming) as (engine, fake):
            engine.run(chain, question="why?")
        prompts.append({rid[32:]: text for rid, text in fake.prompts.items()})
    assert prompts[0] == prompts[1]
    turns = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n[reply] calm: héat ?<|im_end|>\n"
    assert prompts[0][".00001."] == turns + "<|im_start|>assistant\n"


def test_streaming_submits_all_at_once_and_off_waits(tokenizer_path: Path, chain: Workflow) -> None:
    for streaming, expected in (("on", 3), ("off", 1)):
        with running(tokenizer_path, lambda _: Reply("x", delay=0.05), streaming=streaming) as (engine, _):
            events = list(engine.stream_events(chain, question="q"))
        first_token = next(i for i, e in enumerate(events) if isinstance(e, Token))
        assert sum(isinstance(e, TaskSubmitted) for e in events[:first_token]) == expected


def test_hints_say_who_reads_whom(tokenizer_path: Path, chain: Workflow) -> None:
    with running(tokenizer_path, edge_weight=4) as (engine, fake):
        engine.run(chain, question="q")
    payloads = [request.hint["actions"][0]["payload"] for request in fake.requests if request.hint]
    by_task = {p["task"]: p for p in payloads}
    assert by_task["rewrite"]["readers"] == ["reply"] and by_task["reply"]["readers"] == ["check"]
    (hole,) = [s for s in by_task["check"]["segments"] if "task" in s]
    assert hole == {"task": "reply", "transform": {"kind": "strip", "left": True, "right": True}, "weight": 4}
    assert {p["tasks"] for p in payloads} == {3} and len({p["run"] for p in payloads}) == 1


def test_off_sends_ordinary_requests(tokenizer_path: Path, chain: Workflow) -> None:
    fake = FakeEngine(tokenizer_path, answers, grape=None)
    with Engine(client=fake, streaming="off", plugin=False) as engine:
        record = engine.run(chain, question="q")
    assert all(request.hint is None for request in fake.requests)
    assert record.run.settings.grape is None and record.tasks["check"].early_tokens == 0


def test_events_are_tagged_and_in_order(tokenizer_path: Path, chain: Workflow) -> None:
    with running(tokenizer_path) as (engine, _):
        events = list(engine.stream_events(chain, question="q"))
    assert isinstance(events[0], RunStarted) and events[0].tasks == ("rewrite", "reply", "check")
    assert isinstance(events[-1], RunFinished) and len({e.run for e in events}) == 1
    record = events[-1].record
    for name, variable in (("rewrite", "query"), ("reply", "answer"), ("check", "verdict")):
        own = [e for e in events if not isinstance(e, RunStarted | RunFinished) and e.task == name]
        assert isinstance(own[0], TaskSubmitted) and isinstance(own[-1], TaskFinished)
        tokens = [e for e in own if isinstance(e, Token)]
        assert {e.variable for e in own} == {variable}
        assert "".join(e.text for e in tokens) == record.tasks[name].output_text
        assert [i for e in tokens for i in e.ids] == record.tasks[name].output_ids


def test_nothing_streamed_changes_later(tokenizer_path: Path) -> None:
    """Bytes of a character come one by one, a near miss of a stop string stands before the real one."""
    workflow = Workflow("one")
    workflow.add_variable("out", OutputVar)
    workflow.add_task("only", "go", task_output="out", stop="END")
    with running(tokenizer_path, lambda _: Reply("漢字 EN 🍇 END", stop="END")) as (engine, _):
        events = list(engine.stream_events(workflow))
    texts = [e.text for e in events if isinstance(e, Token)]
    assert "".join(texts) == "漢字 EN 🍇 " and all("\ufffd" not in text for text in texts)


def test_an_unfinished_character_at_the_end(tokenizer_path: Path) -> None:
    workflow = Workflow("one")
    workflow.add_variable("out", OutputVar)
    workflow.add_task("only", "go", task_output="out", max_tokens=4)

    class Cut(FakeEngine):
        def _end(self, request, prompt, finish, output=None, new=None, hint=None):  # type: ignore[no-untyped-def]
            return super()._end(request, prompt, finish, output and output[:-1], (), hint)

    fake = Cut(tokenizer_path, lambda _: Reply("a漢", length=True))
    with Engine(client=fake) as engine:
        events = list(engine.stream_events(workflow))
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.record.outputs["out"] == "".join(e.text for e in events if isinstance(e, Token)) == "a\ufffd"


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (Reply(refuse=(400, "bad sampling")), ErrorKind.ERROR, "bad sampling"),
        (Reply(refuse=(400, "is longer than the model's context length")), ErrorKind.TOO_LONG, "longer"),
        (Reply("x", abort=(500, "out of memory")), ErrorKind.ERROR, "out of memory"),
        (Reply("x", abort=(504, "task 'reply' ran longer than its timeout of 1 s")), ErrorKind.TIMEOUT, "ran longer"),
        (Reply("x", abort=(499, "the run was cancelled")), ErrorKind.CANCELLED, "cancelled"),
    ],
)
def test_one_failure_ends_the_run(
    tokenizer_path: Path, chain: Workflow, reply: Reply, kind: ErrorKind, message: str
) -> None:
    def script(prompt: str) -> Reply | str:
        return reply if "[reply]" in prompt else answers(prompt)

    with running(tokenizer_path, script) as (engine, fake):
        events = list(engine.stream_events(chain, question="q"))
        with pytest.raises(RunFailedError, match=message):
            engine.run(chain, question="q")
    last = events[-1]
    assert isinstance(last, RunFailed)
    assert (last.error.task, last.error.kind) == ("reply", kind) and message in last.error.message
    assert last.record.run.status == "failed" and last.record.run.error == last.error
    assert last.record.outputs == {} and last.record.tasks["rewrite"].finish_reason == "stop"
    assert {e.task: e.error.kind for e in events if isinstance(e, TaskFailed)} == {
        "reply": kind,
        "check": ErrorKind.CANCELLED,
    }
    assert sorted(rid[33:] for rid in fake.aborts) == ["00002.", "00002."]  # once per run: the one that was live


def test_the_blamed_task_is_the_one_that_the_engine_names(tokenizer_path: Path, chain: Workflow) -> None:
    message = "task 'check': its prompt has 9000 tokens or more, the engine takes prompts below 8000"
    script = lambda prompt: Reply("x", abort=(400, message))  # noqa: E731
    with running(tokenizer_path, script) as (engine, _), pytest.raises(RunFailedError) as failure:
        engine.run(chain, question="q")
    error = failure.value.error
    assert (error.task, error.kind) == ("check", ErrorKind.TOO_LONG)
    assert error.text().startswith("task check: its prompt has 9000")


def hanging(prompt: str) -> Reply | str:
    return Reply("begin", hang=True) if "[reply]" in prompt else answers(prompt)


def test_run_timeout(tokenizer_path: Path, chain: Workflow) -> None:
    with running(tokenizer_path, hanging) as (engine, fake), pytest.raises(RunFailedError) as failure:
        engine.run(chain, question="q", timeout=0.3)
    assert (failure.value.error.task, failure.value.error.kind) == (None, ErrorKind.TIMEOUT)
    assert "not ended: reply, check" in failure.value.error.message
    assert failure.value.record.tasks["reply"].output_text == "begin"
    assert sorted(rid[33:] for rid in fake.aborts) == ["00001.", "00002."]


@pytest.mark.parametrize("streaming", ["on", "off"])
@pytest.mark.parametrize("timeout", [Timeout(run=0.2), Timeout(idle=0.2)])
def test_task_timeouts(tokenizer_path: Path, streaming: Any, timeout: Timeout) -> None:
    workflow = Workflow("w")
    workflow.add_variable("question", InputVar)
    workflow.add_variable("a", OutputVar)
    workflow.add_variable("b", OutputVar)
    workflow.add_task("first", "[rewrite] {{question}}", task_output="a", timeout=Timeout(run=30))
    workflow.add_task("second", "[reply] {{a}}", task_output="b", timeout=timeout)
    started = running(tokenizer_path, hanging, streaming=streaming)
    with started as (engine, fake), pytest.raises(RunFailedError) as failure:
        engine.run(workflow, question="q")
    assert (failure.value.error.task, failure.value.error.kind) == ("second", ErrorKind.TIMEOUT)
    assert [rid[33:] for rid in fake.aborts] == ["00001."]


def test_waiting_for_an_upstream_is_not_running(tokenizer_path: Path) -> None:
    workflow = Workflow("w")
    workflow.add_variable("a", OutputVar)
    workflow.add_variable("b", OutputVar)
    workflow.add_task("first", "[slow]", task_output="a")
    workflow.add_task("second", "[quick] {{a}}", task_output="b", timeout=Timeout(run=0.2, idle=0.2))
    with running(tokenizer_path, lambda p: Reply("abcd", delay=0.1 if "[slow]" in p else 0)) as (engine, _):
        assert engine.run(workflow).outputs["b"] == "abcd"


def test_cancel_aborts_what_is_live_once(tokenizer_path: Path, chain: Workflow) -> None:
    """A chain cancelled in its second task: the third never runs, the first gets no abort."""

    async def cancelled(engine: Engine, fake: FakeEngine) -> None:
        run = asyncio.create_task(engine.arun(chain, question="q"))
        while len(fake.prompts) < 2:
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert not fake.live  # ended before the cancellation came back

    with running(tokenizer_path, hanging) as (engine, fake):
        asyncio.run(cancelled(engine, fake))
        assert sorted(rid[33:] for rid in fake.aborts) == ["00001.", "00002."]
        assert not any("[check]" in prompt for prompt in fake.prompts.values())


def test_leaving_the_stream_cancels(tokenizer_path: Path, chain: Workflow) -> None:
    async def leave(engine: Engine) -> None:
        events = engine.stream(chain, question="q")
        async for event in events:
            if isinstance(event, Token) and event.task == "reply":
                break
        await events.aclose()  # type: ignore[attr-defined]

    with running(tokenizer_path, hanging) as (engine, fake):
        asyncio.run(leave(engine))
        assert len(fake.aborts) == 2 and not fake.live
        for event in engine.stream_events(chain, question="q"):
            if isinstance(event, Token) and event.task == "reply":
                break
        del event
        deadline = time.monotonic() + 5
        while fake.live and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(fake.aborts) == 4 and not fake.live


def test_off_cancels_what_was_never_submitted(tokenizer_path: Path, chain: Workflow) -> None:
    with running(tokenizer_path, hanging, streaming="off") as (engine, fake), pytest.raises(RunFailedError):
        engine.run(chain, question="q", timeout=0.2)
    assert [rid[33:] for rid in fake.aborts] == ["00001."] and len(fake.requests) == 2


def test_an_engine_that_ignores_aborts_does_not_hold_the_run(
    tokenizer_path: Path, chain: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sglang_ext.driver.run.ABORT_SECONDS", 0.1)
    with running(tokenizer_path, hanging) as (engine, fake):
        fake.deaf = True
        with pytest.raises(RunFailedError):
            engine.run(chain, question="q", timeout=0.1)
        assert not fake.live


class KeepingBack(FakeEngine):
    """Refuses each request when its abort has overtaken it."""

    async def _answer(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        await self._aborted[request.rid].wait()
        raise RequestRefused("run 0 has ended", 400)
        yield  # makes it a generator


def test_a_time_limit_passes_before_the_engine_takes_the_task(tokenizer_path: Path) -> None:
    workflow = Workflow("w")
    workflow.add_variable("a", OutputVar)
    workflow.add_task("only", "[slow]", task_output="a", timeout=Timeout(run=0.1))
    engine = Engine(client=KeepingBack(tokenizer_path, answers))
    with engine, pytest.raises(RunFailedError) as failure:
        engine.run(workflow)
    assert (failure.value.error.task, failure.value.error.kind) == ("only", ErrorKind.TIMEOUT)
    assert "timeout(run = 0.1s)" in failure.value.error.message


def test_a_lost_engine_is_an_engine_error(tokenizer_path: Path, chain: Workflow) -> None:
    def script(prompt: str) -> Reply | str:
        return Reply("x", lost=True) if "[reply]" in prompt else answers(prompt)

    with running(tokenizer_path, script) as (engine, _), pytest.raises(EngineError, match="broke"):
        engine.run(chain, question="q")
    with running(tokenizer_path, hanging) as (engine, fake):
        threading.Timer(0.2, fake.die).start()
        with pytest.raises(EngineError, match="killed"):
            engine.run(chain, question="q")
        assert fake.aborts == []  # nobody is there to hear one


def test_runs_from_many_threads(tokenizer_path: Path, chain: Workflow) -> None:
    found: list[str] = []
    with running(tokenizer_path, lambda p: Reply(p[-60:-40], delay=0.001)) as (engine, _):
        threads = [
            threading.Thread(target=lambda i=i: found.append(engine.run(chain, question=f"q{i}").run.id))
            for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(found)) == 8


def test_runs_side_by_side_do_not_touch_each_other(tokenizer_path: Path, chain: Workflow) -> None:
    def script(prompt: str) -> Reply | str:
        return Reply(refuse=(400, "no")) if "bad" in prompt and "[reply]" in prompt else answers(prompt)

    def rewrite(prompt: str) -> Reply | str:
        return "bad" if "[rewrite] bad" in prompt else script(prompt)

    async def both(engine: Engine) -> None:
        bad, good = await asyncio.gather(
            engine.arun(chain, question="bad"), engine.arun(chain, question="good"), return_exceptions=True
        )
        assert isinstance(bad, RunFailedError)
        assert not isinstance(good, BaseException) and good.ok

    with running(tokenizer_path, rewrite) as (engine, _):
        asyncio.run(both(engine))


def test_seed_is_refused(tokenizer_path: Path) -> None:
    workflow = Workflow("w")
    workflow.add_variable("a", OutputVar)
    workflow.add_task("first", "x", task_output="a", seed=7)
    with running(tokenizer_path) as (engine, fake), pytest.raises(InputError, match=r"'first': seed = 7"):
        engine.run(workflow)
    assert fake.requests == []


def test_sampling_options_and_logprobs(tokenizer_path: Path) -> None:
    workflow = Workflow("w")
    workflow.add_variable("a", OutputVar)
    workflow.add_variable("b", OutputVar)
    workflow.add_task(
        "first", "x", task_output="a", max_tokens=9, temperature=0, top_p=0.5, stop=["u", "v"], logprobs=2
    )
    workflow.add_task("second", "y", task_output="b")
    with running(tokenizer_path, lambda _: "ok") as (engine, fake):
        record = engine.run(workflow)
    first, second = fake.requests
    assert first.sampling == {"max_new_tokens": 9, "temperature": 0, "top_p": 0.5, "stop": ["u", "v"]}
    assert second.sampling == {"max_new_tokens": 256}
    assert (first.logprobs, second.logprobs) == (2, None)
    assert record.tasks["first"].logprobs == [] and record.tasks["second"].logprobs is None
