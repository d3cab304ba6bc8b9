"""Audit, for ``panel serve dashboards/audit.py``; the page itself is explorer/pages/audit.py."""

from inside_deepinfer.explorer.shell import app

app("audit")().servable()
