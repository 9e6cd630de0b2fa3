"""Prices an order of a small mail-order shop."""
