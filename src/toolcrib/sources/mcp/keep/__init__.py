"""Keeping servers connected: attempts, pauses, probes, and how each is said to be."""
