"""The client side of a run: it submits a workflow's tasks to an engine and collects their tokens."""
