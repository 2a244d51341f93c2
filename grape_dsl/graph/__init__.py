"""The micro-task graph: what a workflow is lowered to, its verifier and its printed forms."""
