"""SGLang's flags through its own parser. Needs SGLang, starts no engine."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sglang")

from sglang_ext.driver.engine_arguments import CPU_DEFAULTS, REFUSED, parse_flags, with_defaults
from sglang_ext.driver.errors import InputError


def test_only_what_was_given_with_sglangs_types() -> None:
    flags = ["--dtype", "float32", "--max-total-tokens=4096", "--disable-radix-cache", "--mem-fraction-static", "0.2"]
    assert parse_flags(flags) == {
        "dtype": "float32",
        "max_total_tokens": 4096,
        "disable_radix_cache": True,
        "mem_fraction_static": 0.2,
    }
    assert parse_flags([]) == {}
    assert parse_flags(["--disable-cuda-graph"]) == {"disable_cuda_graph": True}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--max-total-tokens", "many"], "Invalid integer value: 'many'"),
        (["--dtype", "float7"], "invalid choice"),
        (["--max-total", "5"], "unrecognized"),
    ],
)
def test_flags_that_sglang_does_not_take(flags: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_flags(flags)


def test_a_file_of_flags(tmp_path: Any) -> None:
    (tmp_path / "sglang.yaml").write_text("dtype: float32\ndisable-radix-cache: true\n")
    flags = ["--config", f"{tmp_path}/sglang.yaml", "--page-size", "16"]
    assert parse_flags(flags) == {"dtype": "float32", "disable_radix_cache": True, "page_size": 16}


def test_what_the_user_gives_wins() -> None:
    from sglang.srt.platforms import current_platform

    found = with_defaults("m", {"dtype": "float32", "log_level": "error"})
    assert (found["dtype"], found["log_level"], found["model_path"]) == ("float32", "error", "m")
    expected = CPU_DEFAULTS if current_platform.device_type == "cpu" else {}
    assert {name: found.get(name) for name in expected} == expected
    assert with_defaults("m", {"enable_mixed_chunk": False})["enable_mixed_chunk"] is False


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_would_be_ignored_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        with_defaults("m", {name: "x"})


def test_two_models() -> None:
    with pytest.raises(InputError, match="two models"):
        with_defaults("m", {"model_path": "n"})
