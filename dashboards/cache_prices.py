"""Cache prices, for ``panel serve dashboards/cache_prices.py``; the page itself is explorer/pages/cache_prices.py."""

from inside_deepinfer.explorer.shell import app

app("cache-prices")().servable()
