"""Be the scheduler: a game without a terminal.

`Game` runs a litmus program and asks at each choice which task runs next.  ``toolrt litmus NAME --play`` plays it in a
terminal, `toolrt.view.play` on a page.  `write_site` writes the whole gallery: a page for each program, and an index.
"""

from toolrt.teaching.play._game import Game, Hint, Option, Played
from toolrt.teaching.play._site import MOST_ON_A_PAGE, GallerySite, write_site

__all__ = ["MOST_ON_A_PAGE", "GallerySite", "Game", "Hint", "Option", "Played", "write_site"]
