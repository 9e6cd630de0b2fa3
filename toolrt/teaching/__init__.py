"""Material for teaching and for self-study.

- `toolrt.teaching.litmus`: small concurrent programs with their exact outcome sets.
- `toolrt.teaching.play`: a game in which the player schedules such a program by hand.
- `toolrt.teaching.lab`: experiments that compare searches, and exercises that grade themselves.
"""
