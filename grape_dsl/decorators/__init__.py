"""`@task` and `@workflow`: a workflow as Python functions, traced once into a `Workflow`."""

from grape_dsl.decorators.options import TaskOptions
from grape_dsl.decorators.symbol import Symbol
from grape_dsl.decorators.task_function import TaskFunction, docstring_text, task
from grape_dsl.decorators.tracing import workflow

__all__ = ["Symbol", "TaskFunction", "TaskOptions", "docstring_text", "task", "workflow"]
