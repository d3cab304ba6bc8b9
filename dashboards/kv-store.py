"""The page alone: ``panel serve dashboards/kv-store.py`` (the whole site: ``inside-deepinfer serve``)."""

from inside_deepinfer.explorer.shell import page_alone

page_alone(__file__)
