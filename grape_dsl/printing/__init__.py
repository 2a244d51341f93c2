"""A graph, printed: text for reading, JSON, Mermaid and DOT. Always text, without any service."""
