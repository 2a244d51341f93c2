"""The client of an SGLang server, against a transport that answers as the server does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.engine_client import GenerateRequest
from sglang_ext.driver.errors import EngineError, InputError, RunFailedError
from sglang_ext.driver.record import ErrorKind
from sglang_ext.driver.server_engine import ServerEngine
from tests.sglang_ext.fake_engine import GRAPE, FakeEngine, Reply


class Stream(httpx.AsyncByteStream):
    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._lines:
            yield line


class FakeServer:
    """SGLang's HTTP paths on top of an engine without a model.

    `text` stands raw in each output, as SGLang sends it; `instead` replaces a line of the stream; `size` cuts the
    stream into parts of so many bytes.
    """

    def __init__(self, folder: Path, script: Any, **info: Any) -> None:
        self.engine = FakeEngine(folder, script)
        self.info = {"model_path": "m", "tokenizer_path": str(folder), "version": "0.5.23", **info}
        self.key: str | None = None
        self.bodies: list[dict[str, Any]] = []
        self.opened_late = False
        self.broken = False
        self.text = ""
        self.instead: bytes | None = None
        self.size: int | None = None

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return httpx.Response(401, json={"error": "Unauthorized"})
        if request.url.path == "/server_info":
            await self.engine.start()
            grape = self.engine.grape
            states = [{} if grape is None else {"grape": grape}]
            return httpx.Response(200, json={"internal_states": states, **self.info})
        body = json.loads(request.content)
        if request.url.path == "/abort_request":
            await self.engine.abort(body["rid"])
            return httpx.Response(200)
        self.bodies.append(body)
        if self.opened_late:
            await asyncio.sleep(0.3)
        return httpx.Response(200, stream=Stream(self._parts(self._answer(body))))

    async def _parts(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            size = self.size or len(line)
            for start in range(0, len(line), size):
                yield line[start : start + size]

    async def _answer(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        request = GenerateRequest(body["rid"], body["input_ids"], body["sampling_params"], body.get("kv_hints"))
        ids: list[int] = []
        try:
            async for chunk in self.engine.generate(request):
                if self.broken:
                    raise httpx.ReadError("connection reset")
                ids += chunk.ids
                meta = {**chunk.meta, "finish_reason": chunk.finish}
                output = {"text": self.text, "output_ids": ids, "meta_info": meta}
                line = b"data: " + json.dumps(output, ensure_ascii=False).encode()
                yield (line if self.instead is None else self.instead) + b"\n\n"
        except Exception as error:
            if isinstance(error, httpx.HTTPError):
                raise
            answer = {"error": {"message": str(error), "type": "invalid_request_error", "code": 400}}
            yield b"data: " + json.dumps(answer).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"


def connected(server: FakeServer, **options: Any) -> Engine:
    return Engine(client=ServerEngine("http://fake/", transport=httpx.MockTransport(server)), **options)


def answers(prompt: str) -> Reply | str:
    return Reply("héat\n", stop="\n") if "[rewrite]" in prompt else "yes"


@pytest.mark.parametrize("streaming", ["on", "off"])
def test_records_are_those_of_an_embedded_engine(tokenizer_path: Path, chain: Workflow, streaming: Any) -> None:
    server = FakeServer(tokenizer_path, answers)
    with connected(server, streaming=streaming) as engine:
        found = engine.run(chain, question="q")
    with Engine(client=FakeEngine(tokenizer_path, answers), streaming=streaming) as engine:
        expected = engine.run(chain, question="q")
    assert found.outputs == expected.outputs
    times = {"first_token_s", "end_s"}
    assert {n: t.model_dump(exclude=times) for n, t in found.tasks.items()} == {
        n: t.model_dump(exclude=times) for n, t in expected.tasks.items()
    }
    assert found.run.settings.engine == "http://fake"
    assert ["kv_hints" in body for body in server.bodies] == [streaming == "on"] * 3


def test_api_key(tokenizer_path: Path, chain: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(tokenizer_path, answers)
    server.key = "secret"
    monkeypatch.delenv("GRAPE_API_KEY", raising=False)
    with pytest.raises(EngineError, match="asks for an API key, and none is set in GRAPE_API_KEY"), connected(server):
        pass
    monkeypatch.setenv("GRAPE_API_KEY", "guess")
    with pytest.raises(EngineError, match="asks for an API key, and it refuses the one in GRAPE_API_KEY"):
        connected(server).start()
    monkeypatch.setenv("GRAPE_API_KEY", "schlüssel")
    with pytest.raises(InputError, match="not ASCII"):
        connected(server).start()
    monkeypatch.setenv("GRAPE_API_KEY", "secret")
    with connected(server) as engine:
        assert engine.run(chain, question="q").ok


@pytest.mark.parametrize(
    ("grape", "message"),
    [
        (None, "runs without the Grape plugin.*no key 'grape'"),
        (
            {**GRAPE, "applied": False, "hooks": {"a.Scheduler": False, "b": True}},
            "its hooks a.Scheduler are not applied",
        ),
        ({**GRAPE, "applied": False, "hooks": {}, "sglang": "0.6"}, "not applied on SGLang 0.6"),
    ],
)
def test_a_server_without_the_plugin_is_refused(tokenizer_path: Path, grape: Any, message: str) -> None:
    server = FakeServer(tokenizer_path, answers)
    server.engine.grape = grape
    with pytest.raises(EngineError, match=message), connected(server):
        pass
    if grape is None:
        with connected(server, streaming="off", plugin=False) as engine:
            assert engine.info.sglang == "0.5.23"


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"tokenizer_path": "/no/such/folder"}, "--tokenizer PATH"),
        ({"incremental_streaming_output": True}, "--incremental-streaming-output"),
    ],
)
def test_servers_that_cannot_be_used(tokenizer_path: Path, info: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message), connected(FakeServer(tokenizer_path, answers, **info)):
        pass


def test_what_is_no_sglang_server() -> None:
    async def page(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="<html>")

    async def nothing(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    for handler, message in ((page, "does not answer /server_info as"), (nothing, "no server answers at http://x")):
        client = ServerEngine("http://x", transport=httpx.MockTransport(handler))
        with pytest.raises(EngineError, match=message), Engine(client=client):
            pass


def test_refusals_in_the_stream(tokenizer_path: Path, chain: Workflow) -> None:
    server = FakeServer(tokenizer_path, lambda _: Reply(refuse=(400, "longer than the model's context length")))
    with connected(server) as engine, pytest.raises(RunFailedError) as failure:
        engine.run(chain, question="q")
    assert failure.value.error.kind is ErrorKind.TOO_LONG


def test_a_broken_connection(tokenizer_path: Path, chain: Workflow) -> None:
    server = FakeServer(tokenizer_path, answers)
    server.broken = True
    with connected(server) as engine, pytest.raises(EngineError, match="connection to http://fake broke"):
        engine.run(chain, question="q")


@pytest.mark.parametrize("size", [None, 1, 7])
def test_lines_end_at_line_feeds_alone(tokenizer_path: Path, chain: Workflow, size: int | None) -> None:
    server = FakeServer(tokenizer_path, answers)
    server.text, server.size = "a\u2028b\u2029c\x85d\x1ce", size
    with connected(server) as engine:
        assert engine.run(chain, question="q").outputs["answer"] == "yes"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b'data: {"output_ids": [1', "'{\"output_ids\": [1' (JSONDecodeError: "),
        (b"data: \xff", "'\N{REPLACEMENT CHARACTER}' (UnicodeDecodeError: "),
        (b"data: [1]", "'[1]' (AttributeError: "),
        (b"data: {}", "'{}' (KeyError: 'meta_info')"),
        (b'data: {"meta_info": "' + b"x" * 1000 + b'"}', "x...' ("),
    ],
)
def test_what_is_no_output(tokenizer_path: Path, chain: Workflow, line: bytes, shown: str) -> None:
    server = FakeServer(tokenizer_path, answers)
    server.instead = line
    with connected(server) as engine, pytest.raises(EngineError) as failure:
        engine.run(chain, question="q")
    message = str(failure.value)
    assert message.startswith("the server http://fake sent what is no output of SGLang in its answer to request ")
    assert shown in message and message.endswith("proxy between") and len(message) < 600


def test_a_refusal_of_another_shape(tokenizer_path: Path, chain: Workflow) -> None:
    server = FakeServer(tokenizer_path, answers)
    server.instead = b'data: {"error": "overloaded"}'
    with connected(server) as engine, pytest.raises(RunFailedError, match="overloaded"):
        engine.run(chain, question="q")


def test_aborts_wait_until_the_server_has_the_request(tokenizer_path: Path, chain: Workflow) -> None:
    server = FakeServer(tokenizer_path, lambda _: Reply("x", hang=True))
    server.opened_late = True
    with connected(server) as engine, pytest.raises(RunFailedError):
        engine.run(chain, question="q", timeout=0.1)
    assert sorted(rid[33:] for rid in server.engine.aborts) == ["00000.", "00001.", "00002."]
    assert not server.engine.live
