"""HBM and experts, for ``panel serve dashboards/hbm.py``; the page itself is explorer/pages/hbm.py."""

from inside_deepinfer.explorer.shell import app

app("hbm")().servable()
