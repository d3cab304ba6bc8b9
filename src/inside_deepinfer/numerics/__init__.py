"""Small NumPy demonstrations of mechanisms: bounded replay, ring buffers, batch invariance, deterministic sampling."""
