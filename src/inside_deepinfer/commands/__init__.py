"""The commands of ``inside-deepinfer``, one module each; see ``cli.COMMANDS``."""
