"""Workloads of the benchmarks: what is run, on which inputs, and when it arrives."""
