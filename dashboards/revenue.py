"""Revenue, for ``panel serve dashboards/revenue.py``; the page itself is explorer/pages/revenue.py."""

from inside_deepinfer.explorer.shell import app

app("revenue")().servable()
