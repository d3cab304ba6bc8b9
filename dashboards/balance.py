"""Balance, for ``panel serve dashboards/balance.py``; the page itself is explorer/pages/balance.py."""

from inside_deepinfer.explorer.shell import app

app("balance")().servable()
