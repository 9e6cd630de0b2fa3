"""Be the scheduler: a game without a terminal.

`Game` runs a litmus program and asks at each choice which task runs next.  ``toolrt litmus NAME --play`` plays it in a
terminal, `toolrt.view.play` on a page.
"""

from toolrt.teaching.play._game import Game, Hint, Option, Played

__all__ = ["Game", "Hint", "Option", "Played"]
