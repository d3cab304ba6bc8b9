"""Publishing: the Sphinx extension of the book, the command that builds it, and the server that hands it out."""
