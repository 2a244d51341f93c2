"""The micro-task graph: what a workflow is lowered to, and its verifier."""
