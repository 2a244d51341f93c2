"""Tasks of runs as the engine sees them: the wire contract and a task's life. Pure: no SGLang, no torch, no clock."""
