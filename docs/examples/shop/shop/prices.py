"""The price list, and how prices are written."""

import csv
from pathlib import Path

Price = float


def written(price: Price, currency: str) -> str:
    """A price as a customer reads it."""
    return f"{price:.2f} {currency}"


def read_prices(path: Path) -> dict[str, Price]:
    """The price of each article in a list with the columns article and price."""
    with path.open(newline="", encoding="utf-8") as lines:
        return {row["article"]: Price(row["price"]) for row in csv.DictReader(lines)}
