"""`.flow` text to `Workflow`: `load` reads a file, `parse_text` a string."""

from grape_dsl.syntax.loading import LoadedProgram, load, parse_text

__all__ = ["LoadedProgram", "load", "parse_text"]
