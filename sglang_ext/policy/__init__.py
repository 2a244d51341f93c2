"""The scheduling policy: plain functions from a snapshot to a plan. No SGLang, no torch, no clock, no I/O."""
