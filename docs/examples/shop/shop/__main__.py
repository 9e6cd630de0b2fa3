"""``python -m shop ARTICLE=COUNT ...`` prints what an order costs."""

import sys
import tomllib
from pathlib import Path

from shop.cart import total
from shop.prices import read_prices, written

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> None:
    """Print the total of the order that the arguments describe."""
    settings = tomllib.loads((ROOT / "shop.toml").read_text(encoding="utf-8"))
    cart = {article: int(count) for article, _, count in (argument.partition("=") for argument in arguments)}
    prices = read_prices(ROOT / settings["prices"])
    print(written(total(cart, prices), settings["currency"]))


main(sys.argv[1:])
