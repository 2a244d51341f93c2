"""From a checked `Workflow` to a verified `MicroTaskGraph`, in small passes."""

from grape_dsl.lowering.passes import DEFAULT_EDGE_WEIGHT, lower

__all__ = ["DEFAULT_EDGE_WEIGHT", "lower"]
