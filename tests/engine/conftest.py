"""Engines for tests: one per settings, alive as long as tests want it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("sglang", reason="engine tests need the extra `sglang`")

from grape_dsl.encoding import TextEncoder
from tests.engine import tiny_model as tiny
from tests.engine.server import Server, serve
from tests.engine.setting import SETTINGS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, embedded_model: Path) -> Path:
    """A random Llama of two layers with the embedded model's tokenizer."""
    return tiny.make(tmp_path_factory.mktemp("tiny"), embedded_model)


@pytest.fixture(scope="session")
def codec(tiny_model: Path) -> TextEncoder:
    from tokenizers import Tokenizer

    return TextEncoder(Tokenizer.from_file(str(tiny_model / "tokenizer.json")))


@pytest.fixture(scope="session")
def encode(codec: TextEncoder) -> Callable[[str], list[int]]:
    return codec.encode


@pytest.fixture(scope="session")
def stock(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """SGLang without Grape's scheduler, on the same platform: the reference."""
    with serve(tiny_model, tmp_path_factory.mktemp("stock"), stock=True) as server:
        yield server


@pytest.fixture(scope="session")
def engine(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The extension with room for every early token."""
    environment = {"GRAPE_POLICY": "budget", "GRAPE_PREFILL_BUDGET": "4096"}
    with serve(tiny_model, tmp_path_factory.mktemp("engine"), environment=environment) as server:
        yield server


@pytest.fixture(scope="session")
def scarce(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A small pool under `deadline`; KV and running requests are taken away again and again."""
    with SETTINGS["scarce"].serve(tiny_model, tmp_path_factory.mktemp("scarce")) as server:
        yield server
