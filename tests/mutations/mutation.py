"""Mutations: ways to break the runtime, each with the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One change of one line or a few.

    Args:
        file: path from the repository's root.
        old, new: text that stands there once, and what replaces it.
        tests: what pytest is asked to run.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


FAULTS = "tests/engine/test_faults.py"
OUTPUT_FAULTS = "tests/engine/test_output_faults.py"

MUTATIONS = (
    Mutation(
        "the splice repeats a token at each chunk's border",
        "sglang_ext/tasks/task.py",
        "self._taken += count",
        "self._taken += count - (not feed.ended)",
        ("tests/sglang_ext/tasks/test_table.py", f"{OUTPUT_FAULTS}::test_kind_8_generated_ids_pass_through"),
    ),
    Mutation(
        "nothing is held back that may become a stop string",
        "sglang_ext/tasks/streaming_output.py",
        "    return next(cut_off, len(text))\n",
        "    return len(text)\n",
        ("tests/sglang_ext/tasks", f"{OUTPUT_FAULTS}::test_kind_10_stop_strings_over_chunk_borders"),
    ),
    Mutation(
        "a withdrawn request keeps its KV",
        "sglang_ext/engine/early_kv.py",
        "    if req.kv.holds_kv:\n        release_kv_cache(req, scheduler.tree_cache, checkpoint=False)\n",
        "",
        (f"{FAULTS}::test_kind_1_client_gone_while_half_prefilled", f"{FAULTS}::test_kind_2_stop_reaches_every_task"),
    ),
    Mutation(
        "the abort of a run passes over its held tasks",
        "sglang_ext/engine/held_tasks.py",
        "                early_kv.withdraw(self.scheduler, req, message, status)\n",
        "                pass\n",
        (f"{FAULTS}::test_kind_2_stop_reaches_every_task",),
    ),
    Mutation(
        "a prompt completed in the engine is not validated again",
        "sglang_ext/engine/completion.py",
        "    task = req.task\n    length = task.certain_length\n",
        "    return None\n    task = req.task\n    length = task.certain_length\n",
        (f"{OUTPUT_FAULTS}::test_kind_12_the_context_is_passed_by_the_last_chunk",),
    ),
    Mutation(
        "the last piece of a prompt is taken for a middle one",
        "sglang_ext/engine/told_prompts.py",
        "return min(known, task.certain_length - 1)",
        "return known",
        (f"{OUTPUT_FAULTS}::test_kind_11_empty_outputs",),
    ),
)
