"""Grape: workflows of LLM calls, compiled to micro-tasks. The language and the compiler; never torch or SGLang."""
