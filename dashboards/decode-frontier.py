"""The page alone: ``panel serve dashboards/decode-frontier.py`` (the whole site: ``inside-deepinfer serve``)."""

from inside_deepinfer.explorer.shell import page_alone

page_alone(__file__)
