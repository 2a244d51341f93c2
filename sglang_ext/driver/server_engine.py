"""An engine somewhere else: an SGLang server, over `/generate`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from sglang_ext.driver.chunk_reader import ChunkReader
from sglang_ext.driver.engine_client import Chunk, EngineInfo, GenerateRequest
from sglang_ext.driver.errors import EngineError, InputError, RequestRefused
from sglang_ext.driver.tokenizer_folder import tokenizer_folder
from sglang_ext.settings import API_KEY

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_SHOWN_BYTES = 200


class ServerEngine:
    """A server that was started with `python -m sglang.launch_server` where grape-dsl is installed.

    The environment variable GRAPE_API_KEY holds the server's API key, if it has one.

    Args:
        url: such as http://localhost:30000.
        tokenizer: a folder, if the path that the server names cannot be read here.
        transport: replaces the network, for tests.
    """

    def __init__(
        self, url: str, tokenizer: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self._tokenizer = tokenizer
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._opened: dict[str, asyncio.Event] = {}

    async def start(self) -> EngineInfo:
        key = os.environ.get(API_KEY, "")
        if not key.isascii():
            raise InputError(f"the API key in {API_KEY} has characters that are not ASCII; a header cannot carry them")
        try:
            self._client = httpx.AsyncClient(
                base_url=self._url,
                headers={"Authorization": f"Bearer {key}"} if key else {},
                timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS, read=None, pool=None),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
                transport=self._transport,
            )
        except httpx.InvalidURL as error:
            raise EngineError(f"{self._url!r} is no URL of a server: {error}") from error
        info = await self._server_info()
        if info.get("incremental_streaming_output"):
            raise EngineError(
                f"the server {self._url} was started with --incremental-streaming-output, through which a finished "
                "task's figures do not pass; start it without"
            )
        path = self._tokenizer or info.get("tokenizer_path") or info["model_path"]
        return EngineInfo(
            name=self._url,
            model=str(info["model_path"]),
            tokenizer=tokenizer_folder(
                str(path), instead="Give a folder with the server's tokenizer with `--tokenizer PATH`."
            ),
            sglang=str(info.get("version")),
            states=tuple(info.get("internal_states") or ()),
        )

    def interrupt(self) -> None:
        pass  # its start has a time limit

    async def states(self) -> tuple[Mapping[str, Any], ...]:
        return tuple((await self._server_info()).get("internal_states") or ())

    async def _server_info(self) -> dict[str, Any]:
        assert self._client is not None, "the engine was not started"
        try:
            response = await self._client.get("/server_info", timeout=_ANSWER_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EngineError(f"no server answers at {self._url}: {error or type(error).__name__}") from error
        if response.status_code in (401, 403):
            given = os.environ.get(API_KEY)
            reason = f"it refuses the one in {API_KEY}" if given else f"none is set in {API_KEY}"
            raise EngineError(f"the server {self._url} asks for an API key, and {reason}")
        try:
            info = response.raise_for_status().json()
            if not isinstance(info, dict) or "model_path" not in info:
                raise ValueError("no model_path in its answer")
        except (httpx.HTTPStatusError, ValueError) as error:
            raise EngineError(f"{self._url} does not answer /server_info as an SGLang server does: {error}") from error
        return info

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        assert self._client is not None, "the engine was not started"
        body: dict[str, Any] = {
            "rid": request.rid,
            "input_ids": request.input_ids,
            "sampling_params": dict(request.sampling),
            "stream": True,
        }
        if request.hint is not None:
            body["kv_hints"] = dict(request.hint)
        if request.logprobs is not None:
            body |= {"return_logprob": True, "top_logprobs_num": request.logprobs, "logprob_start_len": -1}
        reader = ChunkReader()
        opened = self._opened[request.rid] = asyncio.Event()
        try:
            async with self._client.stream("POST", "/generate", json=body) as response:
                opened.set()
                if response.status_code != 200:
                    raise RequestRefused(_message(await response.aread()), response.status_code)
                async for line in _lines(response.aiter_bytes()):
                    if not line.startswith(b"data:"):
                        continue
                    data = line.removeprefix(b"data:").strip()
                    if data == b"[DONE]":
                        return
                    yield self._read(data, reader, request.rid)
        except httpx.HTTPError as error:
            raise EngineError(f"the connection to {self._url} broke: {error or type(error).__name__}") from error
        finally:
            opened.set()
            del self._opened[request.rid]

    def _read(self, data: bytes, reader: ChunkReader, rid: str) -> Chunk:
        try:
            output = json.loads(data)
            error = output.get("error")
            if error is None:
                return reader.read(output)
        except (ValueError, LookupError, TypeError, AttributeError) as fault:
            shown = data if len(data) <= _SHOWN_BYTES else data[:_SHOWN_BYTES] + b"..."
            raise EngineError(
                f"the server {self._url} sent what is no output of SGLang in its answer to request {rid}: "
                f"{shown.decode(errors='replace')!r} ({type(fault).__name__}: {fault}); look into the server's log, "
                "and at any proxy between"
            ) from fault
        raise RequestRefused(_message(data), error.get("code") if isinstance(error, dict) else None)

    async def abort(self, rid: str) -> None:
        assert self._client is not None, "the engine was not started"
        opened = self._opened.get(rid)
        if opened is None:
            return
        await opened.wait()  # the server drops an abort of a request that it has not seen yet
        try:
            response = await self._client.post("/abort_request", json={"rid": rid}, timeout=_ANSWER_SECONDS)
        except httpx.HTTPError as error:
            raise EngineError(f"the connection to {self._url} broke: {error or type(error).__name__}") from error
        if response.status_code != 200:
            raise EngineError(f"the server {self._url} refused to abort a request: {_message(response.content)}")

    async def died(self) -> str:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never  # a lost server shows in each request's stream

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of an event stream. They end at line feeds alone; texts in them have other line ends as they are."""
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _message(body: bytes) -> str:
    """The message in an error answer of SGLang, whose shapes differ."""
    try:
        answer = json.loads(body)
    except ValueError:
        return body.decode(errors="replace")[:500]
    error: object = answer.get("error", answer) if isinstance(answer, dict) else answer
    return str(error.get("message", error) if isinstance(error, dict) else error)
