"""Makes runs for one engine: the program compiled, inputs checked, prompts encoded, settings settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from grape_dsl.compiler import CompiledWorkflow, compile
from grape_dsl.encoding import ChatEncoder, EncodingError
from grape_dsl.lone_surrogate import lone_surrogate
from grape_dsl.lowering import DEFAULT_EDGE_WEIGHT
from grape_dsl.workflow import Workflow
from sglang_ext.driver.engine_client import EngineClient, EngineInfo
from sglang_ext.driver.errors import EngineError, InputError
from sglang_ext.driver.events import Event
from sglang_ext.driver.inputs import complete_inputs
from sglang_ext.driver.plugin_proof import plugin_state
from sglang_ext.driver.prompts import plan_tasks
from sglang_ext.driver.record import RunSettings
from sglang_ext.driver.run import Run
from sglang_ext.driver.sampling import sampling_params
from sglang_ext.driver.task_output import OutputReader

Streaming = Literal["on", "static", "off"]


class RunFactory:
    """What all runs on one engine share.

    Args:
        streaming: None: as the engine is set.
        edge_weight: of programs that are not compiled yet; None: the compiler's default.

    Raises:
        EngineError: the tokenizer cannot be read.
        InputError: `streaming` asks for what the engine is not set to.
    """

    def __init__(
        self, client: EngineClient, info: EngineInfo, streaming: Streaming | None, edge_weight: int | None
    ) -> None:
        self.client = client
        self.info = info
        self._edge_weight = edge_weight or DEFAULT_EDGE_WEIGHT
        self._plugin = plugin_state(info.states)
        self._streaming = self._settle(streaming)
        try:
            self._encoder = ChatEncoder.from_folder(info.tokenizer)
        except EncodingError as error:
            raise EngineError(str(error)) from error
        self._reader = OutputReader(self._encoder)

    def _settle(self, wanted: Streaming | None) -> Streaming:
        if wanted == "off":
            return "off"
        own: Streaming = (self._plugin or {}).get("settings", {}).get("streaming", "on")
        if wanted is not None and wanted != own:
            raise InputError(
                f"streaming = {wanted!r} is asked for, but the engine {self.info.name} was started with "
                f"GRAPE_STREAMING={own}; it is a setting of the engine"
            )
        return own

    def run(
        self,
        workflow: Workflow | CompiledWorkflow,
        inputs: Mapping[str, object],
        *,
        timeout: float | None,
        index: int,
        emit: Callable[[Event], None],
    ) -> Run:
        """A run that is ready to start.

        Raises:
            DiagnosticError: the workflow has errors.
            InputError: inputs or options that cannot be taken.
        """
        program = check_program(workflow, self._edge_weight)
        values = complete_inputs(program.workflow, inputs)
        try:
            plans = plan_tasks(program, values, self._encoder)
        except EncodingError as error:
            raise InputError(str(error)) from error
        settings = RunSettings(
            streaming=self._streaming,
            edge_weight=next((e.weight for _, _, e in program.graph.edges() if e.weight), self._edge_weight),
            model=self.info.model,
            engine=self.info.name,
            sglang=self.info.sglang,
            grape=None if self._plugin is None else str(self._plugin.get("version")),
            profile=((self._plugin or {}).get("profile") or {}).get("file"),
            timeout=timeout,
        )
        return Run(self.client, program, plans, values, self._reader, settings, index=index, emit=emit)


def check_program(workflow: Workflow | CompiledWorkflow, edge_weight: int = DEFAULT_EDGE_WEIGHT) -> CompiledWorkflow:
    """The compiled program, with all that can be refused without an engine refused.

    Raises:
        DiagnosticError: the workflow has errors.
        InputError: an option of a task that the runtime does not support, or a text that UTF-8 cannot hold.
    """
    program = workflow if isinstance(workflow, CompiledWorkflow) else compile(workflow, edge_weight=edge_weight)
    for task in program.workflow.tasks.values():
        sampling_params(task.name, program.workflow.options(task))
    _check_texts(program)
    return program


def _check_texts(program: CompiledWorkflow) -> None:
    """Workflows that are written in Python can have texts that no engine takes."""
    texts = [
        (name, "its prompt", part)
        for name in program.graph.tasks()
        for node in program.graph.chain(name)
        for part in node.parts
        if isinstance(part, str)
    ]
    for task in program.workflow.tasks.values():
        texts += [(task.name, "a stop text", stop) for stop in program.workflow.options(task).stop or ()]
    for name, what, text in texts:
        if fault := lone_surrogate(text):
            raise InputError(f"task {name!r}: {what} ({text[:40]!r}) has {fault}; write whole characters")
