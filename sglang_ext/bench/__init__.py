"""Benchmarks of the runtime: workloads, arms and figures. `grape bench` is their front door."""
