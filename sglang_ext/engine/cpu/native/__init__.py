"""C code that is compiled where it runs, if there is a compiler; nothing depends on it."""
