"""What steps cost on an engine, measured once and kept in a file."""
