"""Inside DeepInfer: how DeepSeek serves V4.1-Flash, every published number recomputed."""

from importlib.metadata import version

__version__ = version("inside-deepinfer")
