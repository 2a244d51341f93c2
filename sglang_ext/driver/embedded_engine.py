"""An engine of our own: SGLang's `Engine`, its scheduler and detokenizer as children of this process."""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sglang_ext.driver import child_process
from sglang_ext.driver.chunk_reader import ChunkReader
from sglang_ext.driver.engine_arguments import with_defaults
from sglang_ext.driver.engine_client import Chunk, EngineInfo, GenerateRequest
from sglang_ext.driver.engine_files import remove_files
from sglang_ext.driver.errors import EngineError, InputError, RequestRefused
from sglang_ext.driver.sglang_loading import load_sglang, start_method
from sglang_ext.driver.tokenizer_folder import tokenizer_folder

# How long the engine's processes may take to end by themselves, in seconds.
_PATIENCE = 5.0


class EmbeddedEngine:
    """SGLang in this process tree.

    The calling thread must live as long as the engine: its children end with the thread that started them.

    Args:
        model: a folder or a Hugging Face name, as SGLang takes it.
        tokenizer: a folder, if the model's own is not to be used.
        settings: keyword arguments of SGLang's `ServerArgs`.
        environment: variables for the engine's processes.
    """

    def __init__(
        self,
        model: str,
        tokenizer: str | None = None,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._settings = dict(settings or {})
        self._environment = dict(environment or {})
        self._engine: Any = None
        self._ports: Any = None
        self._others: set[Any] = set()
        self._children: list[Any] = []
        self._interrupted = False
        self._death: asyncio.Future[str] | None = None

    async def start(self) -> EngineInfo:
        self._death = asyncio.get_running_loop().create_future()
        self._others = set(multiprocessing.active_children())
        try:
            self._launch()
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            self._find_children()
            self._end_children()
            raise EngineError(f"SGLang did not start: {error}") from error
        self._find_children()
        atexit.register(self._shutdown)
        arguments = self._engine.server_args
        return EngineInfo(
            name="embedded",
            model=self._model,
            tokenizer=tokenizer_folder(
                arguments.tokenizer_path or self._model, instead="Give one with `--tokenizer PATH`."
            ),
            sglang=_version(),
            states=await self.states(),
        )

    def _launch(self) -> None:
        load_sglang()
        from sglang.srt.entrypoints.engine import Engine
        from sglang.srt.server_args import ServerArgs

        own = self

        class OwnEngine(Engine):  # type: ignore[misc]
            run_scheduler_process_func = staticmethod(child_process.run_scheduler)
            run_detokenizer_process_func = staticmethod(child_process.run_detokenizer)

            @classmethod
            def _launch_scheduler_processes(cls, server_args: Any, port_args: Any, *args: Any, **kwargs: Any) -> Any:
                own._ports = port_args
                # SGLang has set `spawn` a moment ago.
                multiprocessing.set_start_method(start_method(), force=True)
                return super()._launch_scheduler_processes(server_args, port_args, *args, **kwargs)

            @classmethod
            def _launch_detokenizer_subprocesses(cls, *args: Any, **kwargs: Any) -> Any:
                try:
                    return super()._launch_detokenizer_subprocesses(*args, **kwargs)
                finally:
                    multiprocessing.set_start_method("spawn", force=True)

        settings = with_defaults(self._model, self._settings)
        if self._tokenizer is not None:
            settings["tokenizer_path"] = self._tokenizer
        try:
            arguments = ServerArgs(**settings)
        except TypeError as error:
            raise InputError(f"SGLang does not take these settings: {error}") from error
        if self._interrupted:
            raise InterruptedError("interrupted")
        with _set(self._environment):
            self._engine = OwnEngine(server_args=arguments)
        # SGLang's own clean-up ends every child of this process, also those that are not the engine's.
        atexit.unregister(self._engine.shutdown)

    def interrupt(self) -> None:
        self._interrupted = True
        self._find_children()
        self._end_children()

    async def states(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(await self._engine.tokenizer_manager.get_internal_state())

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        reader = ChunkReader()
        try:
            outputs = await self._engine.async_generate(
                input_ids=request.input_ids,
                sampling_params=dict(request.sampling),
                rid=request.rid,
                kv_hints=None if request.hint is None else dict(request.hint),
                return_logprob=request.logprobs is not None,
                top_logprobs_num=request.logprobs or 0,
                logprob_start_len=-1,
                stream=True,
            )
            first = await anext(outputs, None)  # only now SGLang looks at the request
        except ValueError as error:
            raise RequestRefused(str(error), 400) from error
        if first is not None:
            yield reader.read(first)
        async for output in outputs:
            yield reader.read(output)

    async def abort(self, rid: str) -> None:
        self._engine.tokenizer_manager.abort_request(rid)

    def child_failed(self) -> None:
        """One of SGLang's processes said that it fails, or was found dead. Safe to call from any thread."""
        death = self._death
        if death is not None:
            death.get_loop().call_soon_threadsafe(_settle, death, "one of SGLang's processes has failed")

    async def died(self) -> str:
        assert self._death is not None, "the engine was not started"
        return await asyncio.shield(self._death)

    async def close(self) -> None:
        self._shutdown()

    def _shutdown(self) -> None:
        if self._engine is None:
            return
        engine, self._engine = self._engine, None
        atexit.unregister(self._shutdown)
        engine.tokenizer_manager._subprocess_watchdog.stop()
        engine.send_to_rpc.close(linger=0)
        self._end_children()

    def _find_children(self) -> None:
        self._children = [child for child in multiprocessing.active_children() if child not in self._others]

    def _end_children(self) -> None:
        from sglang.srt.utils import kill_process_tree

        for child in self._children:
            child.terminate()
        deadline = time.monotonic() + _PATIENCE
        for child in self._children:
            child.join(timeout=max(0.0, deadline - time.monotonic()))
            kill_process_tree(child.pid, wait_timeout=30)
            child.join()
        self._children = []
        if self._ports is not None:
            remove_files(self._ports)


class QuitSignal:
    """SGLang's processes send SIGQUIT to this one when they fail. While open, `engine` hears of it.

    Python takes signal handlers in the main thread only; opened elsewhere this does nothing, and a failing
    child ends this process, as with SGLang's own `Engine`.
    """

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._previous: Any = None

    def open(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGQUIT, lambda *_: self._engine.child_failed())

    def close(self) -> None:
        if self._previous is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGQUIT, self._previous)
            self._previous = None


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    """The variables in this process's environment, which new processes inherit, for the time of the block."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _settle(future: asyncio.Future[str], message: str) -> None:
    if not future.done():
        future.set_result(message)


def _version() -> str:
    import sglang

    return str(sglang.__version__)
