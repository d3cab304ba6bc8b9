"""The dashboard: page contract, state in the address, one view per state, and the shell that shows it."""
