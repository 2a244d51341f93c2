"""What is compared: engines, and the clients that run the chain on them."""

from __future__ import annotations

from dataclasses import dataclass

from sglang_ext.bench.clients import HeldClient, PlainClient, PrewarmClient, RunClient
from sglang_ext.settings import Streaming


@dataclass(frozen=True, slots=True)
class EngineKind:
    """How an engine differs from the others.

    Args:
        streaming: Grape's; None: stock SGLang, the scheduler plugin not loaded.
        mixed: `--enable-mixed-chunk`, which is off in SGLang's default.
        flags: more flags of SGLang's.
        environment: more variables, as (name, value).
    """

    name: str
    streaming: Streaming | None
    mixed: bool = True
    flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Arm:
    """One engine with one client."""

    name: str
    engine: EngineKind
    client: str
    about: str

    @property
    def stock(self) -> bool:
        return self.engine.streaming is None


_ON = EngineKind("grape", Streaming.ON)
_STATIC = EngineKind("grape-static", Streaming.STATIC)
_STOCK = EngineKind("stock", None)
_DEFAULT = EngineKind("stock-default", None, mixed=False)

ON = Arm("on", _ON, "held", "Grape: B's known text and A's output are prefilled while A decodes")
ARMS = (
    ON,
    Arm("static", _STATIC, "held", "Grape with GRAPE_STREAMING=static: B's known text only"),
    Arm("off", _ON, "plain", "Grape's engine, B sent as an ordinary request when A has ended"),
    Arm("plain", _STOCK, "plain", "stock SGLang, B sent when A has ended"),
    Arm("prewarm", _STOCK, "prewarm", "stock SGLang, the client fills the prefix cache while A streams"),
    Arm("plain-default", _DEFAULT, "plain", "stock SGLang without mixed chunks, its default; B sent when A has ended"),
)
# Arms in which A decodes alone, the preferred one first: the unloaded decode step is taken from one of them.
UNLOADED = ("plain", "plain-default", "off")


def new_client(name: str) -> RunClient:
    """The client of an arm, by its name."""
    clients: dict[str, RunClient] = {"held": HeldClient(), "plain": PlainClient(), "prewarm": PrewarmClient()}
    return clients[name]


def grape_about(policy: str, without: str, streaming: Streaming) -> str:
    """An arm of Grape in words. Args: without: parts of the policy that are off."""
    about = f"Grape, policy {policy}" + (f" without {without}" if without else "")
    return about + {
        Streaming.STATIC: "; only the fixed start of prompts is prefilled early",
        Streaming.OFF: "; the client sends each task when its inputs are complete",
    }.get(streaming, "")


def engines(arms: tuple[Arm, ...]) -> list[EngineKind]:
    """The engines that the arms need, each once."""
    return list(dict.fromkeys(arm.engine for arm in arms))
