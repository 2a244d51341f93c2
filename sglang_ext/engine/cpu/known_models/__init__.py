"""Models that SGLang's registry finds here without importing all that it has; the rest it imports on demand."""
