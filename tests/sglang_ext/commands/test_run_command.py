"""`grape run`, with an engine without a model in the engine's place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from sglang_ext.commands import run as command
from sglang_ext.driver.engine import Engine
from sglang_ext.driver.errors import InputError
from sglang_ext.driver.record import json_schema
from tests.sglang_ext.commands.programs import write
from tests.sglang_ext.fake_engine import FakeEngine, Reply

Invoke = Callable[..., Result]


def script(prompt: str) -> Reply | str:
    if "[check]" in prompt:
        return "fine\n"
    if "[reply]" in prompt:
        return Reply(abort=(500, "no memory")) if "fail" in prompt else "because"
    return "fail" if "bad" in prompt else "query"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write(tmp_path))
    return tmp_path


@pytest.fixture
def invoke(tokenizer_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Runs `grape run` on a fake server; `started` says whether it got that far."""
    before = signal.getsignal(signal.SIGTERM)

    def new_engine(options: object, log: object, settings: object) -> Engine:
        return Engine(client=FakeEngine(tokenizer_path, script))

    monkeypatch.setattr(command, "new_engine", new_engine)

    def call(*arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(command.run, [*arguments, "--url", "http://fake"], input=input)

    yield call
    signal.signal(signal.SIGTERM, before)


def test_outputs_stand_under_their_names(invoke: Invoke) -> None:
    result = invoke("pair.flow", "--input", "question=why")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "answer:\nbecause\nverdict:\nfine\n", "")


@pytest.mark.parametrize("name", ["twin.py", "twin.py:workflow", "twin:workflow", "twin"])
def test_python_programs_and_a_single_output(invoke: Invoke, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "twin", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    result = invoke(name, "--input", "question=why")
    assert (result.exit_code, result.stdout) == (0, "because\n"), result.stderr


def test_program_from_standard_input(invoke: Invoke, folder: Path) -> None:
    result = invoke("-", "--input", "question=why", input=(folder / "pair.flow").read_text())
    assert result.exit_code == 0 and "because" in result.stdout


def test_json_is_the_record(invoke: Invoke) -> None:
    result = invoke("pair.flow", "--input", "question=why", "--json")
    record = json.loads(result.stdout)
    jsonschema.validate(record, json_schema())
    assert record["outputs"] == {"answer": "because", "verdict": "fine\n"}


def test_many_runs(invoke: Invoke, folder: Path) -> None:
    lines = "".join(json.dumps({"question": q}) + "\n" for q in ("one", "bad", "three"))
    result = invoke("pair.flow", "--inputs", "-", "--json", "--jobs", "2", input=lines)
    records = sorted((json.loads(line) for line in result.stdout.splitlines()), key=lambda r: r["run"]["index"])
    assert [r["run"]["status"] for r in records] == ["ok", "failed", "ok"]
    assert records[1]["run"]["error"] == {"task": "reply", "kind": "error", "message": "no memory"}
    assert result.exit_code == 1
    assert result.stderr == "error: run 1 failed (error): task reply: no memory\n"
    (folder / "many.jsonl").write_text(lines)
    result = invoke("pair.flow", "--inputs", "many.jsonl", "--input", "tone=loud")
    assert result.stdout == "[0]\nanswer:\nbecause\nverdict:\nfine\n[1]\n[2]\nanswer:\nbecause\nverdict:\nfine\n"


def test_timeline_and_progress(invoke: Invoke, folder: Path) -> None:
    result = invoke("pair.flow", "--input", "question=why", "--timeline", "t.json", "--progress")
    assert result.exit_code == 0, result.stderr
    names = {e["name"] for e in json.loads((folder / "t.json").read_text())["traceEvents"]}
    assert {"early prefill", "decode"} <= names
    assert "done (stop)" in result.stderr
    result = invoke("pair.flow", "--input", "question=why", "--timeline", "no/where.json")
    assert result.exit_code == 2 and "--timeline: cannot write" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["pair.flow"], 2, "workflow pair needs an input that is not given: question"),
        (["pair.flow", "--input", "qestion=x"], 2, "did you mean 'question'"),
        (["pair.flow", "--input", "question"], 2, "name=value"),
        (["pair.flow", "--inputs", "none.json"], 2, "cannot read none.json"),
        (["pair.flow", "--inputs", "none.jsonl", "--jobs", "0"], 2, "jobs"),
        (["pair.flow", "extra", "--input", "question=x"], 2, "unexpected argument 'extra'"),
        (["pair.flow", "--frobnicate"], 2, "No such option"),
        (["none.flow"], 2, "none.flow"),
        (["none.py"], 2, "there is no file none.py"),
        (["no_such_module:workflow"], 2, "neither a file nor a Python module"),
        (["twin.py:workflo"], 2, "did you mean 'workflow'"),
        (["two.py"], 2, "it has several: first, second"),
        (["twin.py:number"], 2, "no Workflow but int"),
        (["twin.py:broken"], 1, "answer"),
        (["-", "--inputs", "-"], 2, "not both"),
    ],
)
def test_what_is_wrong_is_found_before_an_engine_starts(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, message: str
) -> None:
    def never(*_: object) -> Engine:
        raise AssertionError("an engine was asked for")

    if "extra" not in arguments:
        monkeypatch.setattr(command, "new_engine", never)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert message in result.stderr and "Traceback" not in result.stderr


def test_text_that_is_no_utf_8_is_found_before_an_engine_starts(
    invoke: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> Engine:
        raise AssertionError("an engine was asked for")

    monkeypatch.setattr(command, "new_engine", never)
    (folder / "many.jsonl").write_text('{"question": "one"}\n\n{"question": "two \\ud800"}\n')
    result = invoke("pair.flow", "--inputs", "many.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: many.jsonl, line 3: input 'question' has U+D800 at character 5")


def test_settings_that_nothing_reads_are_told_once(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPE_STREAMIN", "off")
    lines = "".join(json.dumps({"question": q}) + "\n" for q in ("one", "two"))
    result = invoke("pair.flow", "--inputs", "-", input=lines)
    assert result.exit_code == 0 and "because" in result.stdout
    warning = "warning: GRAPE_STREAMIN is set, but Grape has no such setting; did you mean GRAPE_STREAMING"
    assert result.stderr.startswith(warning) and len(result.stderr.splitlines()) == 1


def test_options_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What new_engine makes of them; two of them contradict each other."""
    options = command._Options(1, False, False, None, True, None, None, None, "m", "http://x", None, False)
    with pytest.raises(ValueError, match="a server is given by its URL"):
        command.new_engine(options, None, {})


FLAGS = """
    import os
    from sglang_ext.commands import run
    from sglang_ext.driver import engine_arguments
    from sglang_ext.driver.engine_log import EngineLog

    engine_arguments.parse_flags = lambda flags: os.write(2, b"a warning of SGLang's") and {"flags": flags}
    log = EngineLog()
    print(run._settings(("--dtype", "float32"), log), log.tail())
    log.close()
"""


def test_what_sglang_prints_while_its_flags_are_read_goes_to_the_log() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", textwrap.dedent(FLAGS)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'flags': ('--dtype', 'float32')} a warning of SGLang's\n"
    assert done.stderr == "reading SGLang's flags ...\n"


def test_a_server_takes_no_flags() -> None:
    with pytest.raises(InputError, match="a server is given by its URL, so SGLang's flags cannot be given too"):
        command._settings(("--dtype", "half"), None)


CTRL_C = """
    import sys
    from pathlib import Path
    from sglang_ext.commands import run
    from sglang_ext.driver.engine import Engine
    from tests.sglang_ext.fake_engine import FakeEngine, Reply

    fake = FakeEngine(Path(sys.argv[1]), lambda p: Reply("begin", hang=True) if "[reply]" in p else "x")
    run.new_engine = lambda *_: Engine(client=fake)
    try:
        run.run([sys.argv[2], "--input", "question=q", "--url", "http://fake"])
    finally:
        print(sorted(rid[33:] for rid in fake.aborts), len(fake.live), fake.closed, flush=True)
"""


@pytest.mark.parametrize(
    ("number", "background"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_ctrl_c(tokenizer_path: Path, folder: Path, number: signal.Signals, background: bool) -> None:
    """Also where a shell has started it in the background, with Ctrl-C ignored."""
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CTRL_C), str(tokenizer_path), str(folder / "pair.flow")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        text=True,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if background else None,
    )
    assert process.stdout is not None and process.stderr is not None
    shown = process.stdout.read(len("answer:\nbegin"))
    time.sleep(0.2)
    process.send_signal(number)
    rest, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert shown == "answer:\nbegin" and "Traceback" not in errors
    assert "['00001.', '00002.'] 0 True" in rest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "papper"], "unknown policy 'papper'; did you mean 'paper'?"),
        (
            ["--policy", "paper", "--policy-off", "stage_2"],
            "unknown part of a policy 'stage_2'; did you mean 'stage2'?",
        ),
        (
            ["--policy-off", "region", "--url", "http://x"],
            "the policy of the server http://x is set where it is started",
        ),
    ],
)
def test_a_policy_that_cannot_be_taken(
    folder: Path, tokenizer_path: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything of an engine starts."""
    monkeypatch.setattr(Engine, "start", lambda self: pytest.fail("it was started"))
    model = [] if "--url" in options else ["--model", str(tokenizer_path)]
    result = CliRunner().invoke(command.run, ["pair.flow", "--input", "question=why", *model, *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
