"""An engine without a model: it answers prompts from a script, byte by byte, and completes held prompts itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from grape_dsl.encoding import ChatEncoder
from sglang_ext.driver.engine_client import Chunk, EngineInfo, GenerateRequest
from sglang_ext.driver.errors import EngineError, RequestRefused
from sglang_ext.tasks.hint import Known, OutputHole, TaskHint, read_hint

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GRAPE = {"version": "0.1.0", "sglang": "0.5.23", "applied": True, "hooks": {"Scheduler": True}, "settings": {}}


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer with a token per byte and two special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<|im_start|>", "<|im_end|>")])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", "chat_template": TEMPLATE}))
    return folder


@dataclass
class Reply:
    """What the engine does with a prompt.

    Args:
        text: the output; EOS follows, or `stop` ended it.
        stop: a stop string that `text` ends with.
        delay: seconds before each byte.
        hang: never end by itself.
        refuse: (status, message) of a refusal.
        abort: (status, message) of an abort by the engine after the text.
        lost: the engine is gone after the text.
    """

    text: str = ""
    stop: str | None = None
    delay: float = 0.0
    hang: bool = False
    refuse: tuple[int, str] | None = None
    abort: tuple[int | None, str] | None = None
    lost: bool = False
    length: bool = False


@dataclass
class FakeEngine:
    """Args: script: the reply to a prompt's text."""

    folder: Path
    script: Callable[[str], Reply | str]
    grape: Mapping[str, Any] | None = field(default_factory=lambda: GRAPE)
    prompts: dict[str, str] = field(default_factory=dict)
    requests: list[GenerateRequest] = field(default_factory=list)
    aborts: list[str] = field(default_factory=list)
    live: set[str] = field(default_factory=set)
    closed: bool = False
    deaf: bool = False

    async def start(self) -> EngineInfo:
        self.encoder = ChatEncoder.from_folder(self.folder)
        self._aborted: dict[str, asyncio.Event] = {}
        self._outputs: dict[tuple[str, str], asyncio.Future[list[int]]] = {}
        self._death: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return EngineInfo("fake", "fake-model", self.folder, "0.5.23", await self.states())

    def interrupt(self) -> None:
        pass

    async def states(self) -> tuple[Mapping[str, Any], ...]:
        return ({} if self.grape is None else {"grape": self.grape},)

    async def died(self) -> str:
        return await asyncio.shield(self._death)

    def die(self) -> None:
        self._death.get_loop().call_soon_threadsafe(self._death.set_result, "killed")

    async def abort(self, rid: str) -> None:
        self.aborts.append(rid)
        if not self.deaf:
            self._aborted[rid].set()

    async def close(self) -> None:
        self.closed = True

    async def generate(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        self.live.add(request.rid)
        self._aborted[request.rid] = asyncio.Event()
        try:
            async for chunk in self._answer(request):
                yield chunk
        finally:
            self.live.discard(request.rid)

    async def _answer(self, request: GenerateRequest) -> AsyncIterator[Chunk]:
        hint = None
        if request.hint is not None:
            actions = [(a["action_type"], a["action_version"], a["payload"]) for a in request.hint["actions"]]
            hint = read_hint(actions)
        prompt = list(request.input_ids)
        if hint is not None:
            filled = asyncio.ensure_future(self._fill(hint))
            if await self._first(filled, request.rid):
                filled.cancel()
                yield self._end(request, prompt, {"type": "abort", "message": "Abort in waiting queue"})
                return
            prompt = filled.result()
        text = self.encoder.text.decode(prompt)
        self.prompts[request.rid] = text
        reply = self.script(text)
        reply = Reply(reply) if isinstance(reply, str) else reply
        if reply.refuse is not None:
            raise RequestRefused(reply.refuse[1], reply.refuse[0])
        ids = self.encoder.text.encode(reply.text)
        for count, one in enumerate(ids, 1):
            if await self._first(asyncio.ensure_future(asyncio.sleep(reply.delay)), request.rid):
                yield self._end(request, prompt, {"type": "abort", "message": "Aborted"})
                return
            if count < len(ids) or (reply.stop is None and not reply.length):
                yield Chunk((one,), None, {"prompt_tokens": len(prompt), "cached_tokens": 0})
        if reply.lost:
            raise EngineError("the connection broke")
        if reply.hang:
            await self._first(asyncio.get_running_loop().create_future(), request.rid)
            yield self._end(request, prompt, {"type": "abort", "message": "Aborted"})
        elif reply.abort is not None:
            status, message = reply.abort
            yield self._end(request, prompt, {"type": "abort", "message": message, "status_code": status})
        elif reply.length:
            yield self._end(request, prompt, {"type": "length", "length": len(ids)}, ids, ids[-1:], hint)
        elif reply.stop is not None:
            finish = {"type": "stop", "matched": reply.stop}
            kept = self.encoder.text.encode(reply.text.removesuffix(reply.stop))
            yield self._end(request, prompt, finish, kept, ids[-1:], hint)
        else:
            eos = self.encoder.text.special_id("<|im_end|>")
            assert eos is not None
            yield self._end(request, prompt, {"type": "stop", "matched": eos}, ids, [eos], hint)

    async def _first(self, work: asyncio.Future[Any], rid: str) -> bool:
        """Wait for `work` or an abort; returns whether it was the abort."""
        aborted = asyncio.ensure_future(self._aborted[rid].wait())
        await asyncio.wait([work, aborted], return_when=asyncio.FIRST_COMPLETED)
        won = aborted.done()
        aborted.cancel()
        return won

    def _end(
        self,
        request: GenerateRequest,
        prompt: list[int],
        finish: Mapping[str, Any],
        output: list[int] | None = None,
        new: list[int] | None = None,
        hint: TaskHint | None = None,
    ) -> Chunk:
        meta: dict[str, Any] = {"prompt_tokens": len(prompt), "cached_tokens": 0, "finish_reason": finish}
        if hint is not None and output is not None:
            self._output(hint.run, hint.task).set_result(output)
            streamed = sum(len(self._output(hint.run, hole.task).result()) for hole in hint.holes)
            meta["grape"] = [
                {
                    "early_tokens": hint.known_tokens + streamed if hint.holes else 0,
                    "early_chunks": 2 * len(hint.holes),
                    "cached_tokens": 0,
                    "submitted_s": 100.0,
                    "complete_s": 100.2,
                    "first_token_s": 100.3,
                    "end_s": 100.4,
                    "pieces": [[100.05, 100.1, 8, True], [100.2, 100.3, 4, False]],
                    "slo": {"ttft_bound_s": 0.1, "tbt_bound_s": 0.05, "ttft_s": 0.1, "worst_gap_s": 0.06},
                }
            ]
        return Chunk(tuple(new or ()), finish, meta)

    async def _fill(self, hint: TaskHint) -> list[int]:
        prompt: list[int] = []
        for segment in hint.segments:
            if isinstance(segment, Known):
                prompt += segment.ids
            else:
                assert isinstance(segment, OutputHole)
                output = await asyncio.shield(self._output(hint.run, segment.task))
                text = self.encoder.text.decode(output)
                left, right = segment.sides
                text = text.lstrip() if left else text
                prompt += self.encoder.text.encode(text.rstrip() if right else text)
        return prompt

    def _output(self, run: str, task: str) -> asyncio.Future[list[int]]:
        if (run, task) not in self._outputs:
            self._outputs[run, task] = asyncio.get_running_loop().create_future()
        return self._outputs[run, task]
