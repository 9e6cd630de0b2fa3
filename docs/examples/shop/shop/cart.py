"""A cart: articles and how many of each, and what they cost together."""

from collections.abc import Mapping

from shop.prices import Price

SHIPPING = 4.90


def total(cart: Mapping[str, int], prices: Mapping[str, Price]) -> Price:
    """The price of everything in the cart, shipping included."""
    goods = sum(prices[article] * count for article, count in cart.items())
    return goods + SHIPPING
