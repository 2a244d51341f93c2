"""Break the runtime in one way at a time and see which tests go red: `python -m tests.mutations.run [NAME ...]`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.mutation import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
COPIED = ("grape_dsl", "sglang_ext", "grammar", "examples", "tests", "pyproject.toml")
LIMIT = 600


@dataclass(frozen=True)
class Outcome:
    """The tests that went red under a mutation, and the end of pytest's output."""

    mutation: Mutation
    red: tuple[str, ...]
    tail: str


def run(mutation: Mutation) -> Outcome:
    """Apply `mutation` to a copy and run its tests there; raises ValueError if it no longer fits the code."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        target = copy / mutation.file
        text = target.read_text()
        if text.count(mutation.old) != 1:
            raise ValueError(
                f"{mutation.name}: {mutation.file} holds its text {text.count(mutation.old)} times, not once"
            )
        target.write_text(text.replace(mutation.old, mutation.new))
        # The copy comes first for the engine's processes too, before the installed package.
        env = os.environ | {"PYTHONPATH": str(copy)}
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout", "240"]
        command += ["-rfE", *mutation.tests]
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    red = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.MULTILINE)
    return Outcome(mutation, tuple(red), done.stdout[-1500:])


def main(names: list[str]) -> int:
    """Run the mutations whose name holds one of `names`, all without any; 1 if one was not noticed."""
    chosen = [m for m in MUTATIONS if not names or any(name in m.name for name in names)]
    unnoticed = 0
    for mutation in chosen:
        outcome = run(mutation)
        print(f"{'red' if outcome.red else 'GREEN'}  {mutation.name}  ({mutation.file})", flush=True)
        for test in outcome.red:
            print(f"       {test}", flush=True)
        if not outcome.red:
            unnoticed += 1
            print(outcome.tail)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} mutations were noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
