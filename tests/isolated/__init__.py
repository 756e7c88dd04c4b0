"""Functions that another process can find by name."""
