"""The order of everything: claims, tickets, lanes, result slots.  Pure; knows neither Trio nor time."""

from toolrt.order._tickets import ClaimTable, Ticket

__all__ = ["ClaimTable", "Ticket"]
