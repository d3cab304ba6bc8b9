"""Calculations over a whole scenario, through the catalogue: what a single derived number cannot hold."""
