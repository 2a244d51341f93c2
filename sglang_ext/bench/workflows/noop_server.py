"""A server that answers as SGLang does and computes nothing, to see what the clients themselves cost."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from sglang_ext.bench.clients import PlainClient
from sglang_ext.bench.run_work import RunWork
from sglang_ext.bench.workflows.load import LoadRun
from sglang_ext.bench.workflows.prepared import Prepared
from sglang_ext.driver.server_engine import ServerEngine

_TOKEN = 1
_LONGER = 3
_INFO = {"model_path": "none", "version": "none", "internal_states": []}


async def client_cost(prepared: Prepared) -> tuple[float, float]:
    """Seconds of processor time that the plain client takes per request, and per token of an output.

    The same requests with longer outputs tell the two apart. The server has a thread of its own, whose time does
    not count.
    """
    await _run_all(prepared, 1)
    found = []
    for factor in (1, _LONGER):
        begin = time.thread_time()
        tokens = await _run_all(prepared, factor)
        found.append((time.thread_time() - begin, tokens))
    (few_s, few), (many_s, many) = found
    token_s = max(0.0, (many_s - few_s) / (many - few))
    requests = sum(len(work.plans) for work in prepared.works)
    return max(0.0, few_s - token_s * few) / requests, token_s


async def _run_all(prepared: Prepared, factor: int) -> int:
    """Run everything with outputs `factor` times as long; returns the tokens."""
    works = tuple(
        RunWork(work.plans, {name: factor * tokens for name, tokens in work.outputs.items()}, work.codec)
        for work in prepared.works
    )
    with _serving() as url:
        # The current folder stands for that of a tokenizer, which is not read.
        source = ServerEngine(url, tokenizer=".")
        await source.start()
        try:
            await LoadRun(PlainClient(), source, Prepared(prepared.jobs, works, prepared.digest)).closed(1)
        finally:
            await source.close()
    return sum(sum(work.outputs.values()) for work in works)


@contextmanager
def _serving() -> Iterator[str]:
    """The server's URL, as long as the block runs."""
    port: Future[int] = Future()
    end: Future[Callable[[], object]] = Future()

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        end.set_result(lambda: loop.call_soon_threadsafe(over.set))
        server = await asyncio.start_server(_serve, "127.0.0.1", 0)
        port.set_result(server.sockets[0].getsockname()[1])
        await over.wait()
        server.close()

    # Connections that are kept open still wait for a request: asyncio.run ends them.
    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="noop-server", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port.result()}"
    finally:
        end.result()()
        thread.join()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = next((int(line.partition(":")[2]) for line in head.split("\r\n") if "content-length" in line), 0)
            body = await reader.readexactly(length)
            if head.startswith("get"):
                _answer(writer, "application/json", json.dumps(_INFO).encode())
            else:
                await _stream(writer, json.loads(body)["sampling_params"]["max_new_tokens"])
            await writer.drain()
    writer.close()


async def _stream(writer: asyncio.StreamWriter, tokens: int) -> None:
    """As SGLang, an event per token that repeats what came before."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for made in range(1, tokens + 1):
        finish = {"type": "length", "length": tokens} if made == tokens else None
        event = {"text": "word " * made, "output_ids": [_TOKEN] * made, "meta_info": {"finish_reason": finish}}
        _part(writer, b"data: " + json.dumps(event).encode() + b"\n\n")
        await writer.drain()
    _part(writer, b"data: [DONE]\n\n")
    _part(writer, b"")


def _part(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _answer(writer: asyncio.StreamWriter, kind: str, body: bytes) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
