"""The plugin and the platform decide for themselves whether they apply."""

from __future__ import annotations

import logging

import pytest
import torch
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

from sglang_ext.engine import plugin
from sglang_ext.engine.cpu import activation


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, HookType]]:
    found: list[tuple[str, HookType]] = []

    def note(target: str, hook: object, hook_type: HookType) -> None:
        found.append((target, hook_type))

    monkeypatch.setattr(HookRegistry, "register", note)
    return found


def test_the_scheduler_is_replaced(registered: list[tuple[str, HookType]]) -> None:
    plugin.register()
    expected = {plugin.SCHEDULER: HookType.REPLACE, plugin.ROWS: HookType.AROUND, plugin.TOKENIZER: HookType.AROUND}
    assert dict(registered) == expected
    assert {target for target, _ in registered} == set(plugin.HOOKS)


def test_another_sglang_gets_nothing_and_is_told_so(
    registered: list[tuple[str, HookType]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "version", lambda name: "0.9.9")
    with caplog.at_level(logging.WARNING):
        plugin.register()
    assert registered == []
    assert "0.9.9" in caplog.text
    assert plugin.SUPPORTED_SGLANG in caplog.text


def test_the_cpu_platform_leaves_accelerators_and_the_users_choice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLANG_USE_CPU_ENGINE", raising=False)
    monkeypatch.setenv(activation.MODEL_PACKAGE, "")
    for device in (torch.cuda, torch.xpu, torch.mps):
        monkeypatch.setattr(device, "is_available", lambda: False)
    assert activation.platform() == activation.PLATFORM
    monkeypatch.setenv("SGLANG_USE_CPU_ENGINE", "1")
    assert activation.platform() is None
    monkeypatch.delenv("SGLANG_USE_CPU_ENGINE")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert activation.platform() is None
