"""Where the time of a decode step goes, by groups of operations."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

LINEAR, HEAD = "linear layers", "head"
GATHER, PRODUCTS, WRITE = "attention: gather", "attention: products, softmax", "attention: writes"
ELEMENTWISE, SAMPLING = "norms, rotary, SiLU, sums", "sampling"
OTHER, BETWEEN, SCHEDULER = "views, allocation, others", "between operations: Python", "scheduler, and between steps"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class OperationTime(_Model):
    """An operation of torch with inputs of certain shapes, per step.

    Args:
        seconds: its own time, without the operations that it calls.
    """

    name: str
    shapes: list[list[int]]
    calls: float
    seconds: float


class RawProfile(_Model):
    """Args:
    batch: sequences that decode.
    plain_s: a step without the profiler, the median of some.
    step_s: a step with it.
    """

    batch: int
    plain_s: float
    step_s: float
    operations: list[OperationTime]


class GroupTime(_Model):
    """Args: share: of the step under the profiler. largest: names of its operations, the longest first."""

    group: str
    seconds: float
    share: float
    calls: float
    largest: list[str]


class StepProfile(_Model):
    """One decode step, the mean of some.

    Args:
        batch, plain_s, step_s: as in RawProfile.
        groups: the longest first; together they are `step_s`.
        operations: the longest first.
    """

    batch: int
    plain_s: float
    step_s: float
    groups: list[GroupTime]
    operations: list[OperationTime]

    @classmethod
    def of(cls, raw: RawProfile, vocabulary: int) -> StepProfile:
        """Args: vocabulary: the model's number of ids, by which the head and the sampler are known."""
        operations = sorted(raw.operations, key=lambda each: each.seconds, reverse=True)
        members: dict[str, list[OperationTime]] = {}
        for operation in operations:
            members.setdefault(group_of(operation, vocabulary), []).append(operation)
        outside = raw.step_s - sum(operation.seconds for operation in operations)
        members.setdefault(SCHEDULER, []).append(OperationTime(name="rest", shapes=[], calls=1, seconds=outside))
        groups = [_summed(group, own, raw.step_s) for group, own in members.items()]
        return cls(
            batch=raw.batch,
            plain_s=raw.plain_s,
            step_s=raw.step_s,
            groups=sorted(groups, key=lambda group: group.seconds, reverse=True),
            operations=operations,
        )


# Operations by name, without their library and without the underscore of those that work in place.
_LINEAR = {"_linear_pointwise", "linear", "addmm", "mm", "matmul"}
_GATHER = {"index_select", "index", "gather"}
_PRODUCTS = {"bmm", "baddbmm", "softmax", "_softmax"}
_WRITE = {"index_copy", "index_put", "_index_put_impl"}
_SUMS = {"add", "addcmul", "cat", "mean", "mul", "neg", "pow", "roll", "rsqrt", "silu", "sub"}
_ELEMENTWISE = _SUMS | {"layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"}
_LARGEST = 3


def group_of(operation: OperationTime, vocabulary: int) -> str:
    """The group of an operation, by its name and the shapes of its inputs."""
    name = operation.name.rpartition("::")[2].rstrip("_")
    if "::" not in operation.name:
        # Not an operation but a stretch of SGLang's code that it marks: its own time is Python's.
        return SCHEDULER if name.startswith("scheduler") else BETWEEN
    shapes = [shape for shape in operation.shapes if shape]
    dimensions = len(shapes[0]) if shapes else 0
    if name in _LINEAR:
        return HEAD if any(vocabulary <= size for shape in shapes for size in shape) else LINEAR
    if any(vocabulary <= shape[-1] for shape in shapes if len(shape) == 2):
        return SAMPLING
    for group, names in ((GATHER, _GATHER), (WRITE, _WRITE), (PRODUCTS, _PRODUCTS)):
        if name in names and dimensions > 1:
            return group
    # A mask is added to matrices of scores; queries are scaled in four dimensions.
    if "atten" in name or (name, dimensions) in (("add", 3), ("mul", 4)):
        return PRODUCTS
    return ELEMENTWISE if name in _ELEMENTWISE else OTHER


def _summed(group: str, operations: Sequence[OperationTime], step_s: float) -> GroupTime:
    seconds = sum(operation.seconds for operation in operations)
    names = dict.fromkeys(operation.name.rpartition("::")[2] for operation in operations)
    return GroupTime(
        group=group,
        seconds=seconds,
        share=seconds / step_s,
        calls=sum(operation.calls for operation in operations),
        largest=list(names)[:_LARGEST],
    )
