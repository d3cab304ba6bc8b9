"""Token laboratory, for ``panel serve dashboards/tokens.py``; the page itself is explorer/pages/tokens.py."""

from inside_deepinfer.explorer.shell import app

app("tokens")().servable()
