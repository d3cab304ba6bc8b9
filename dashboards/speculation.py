"""The page alone: ``panel serve dashboards/speculation.py`` (the whole site: ``inside-deepinfer serve``)."""

from inside_deepinfer.explorer.shell import page_alone

page_alone(__file__)
