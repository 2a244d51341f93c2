"""One HTML page from the record of a benchmark of arms under load, measured or simulated."""
