"""Fleet, for ``panel serve dashboards/fleet.py``; the page itself is explorer/pages/fleet.py."""

from inside_deepinfer.explorer.shell import app

app("fleet")().servable()
