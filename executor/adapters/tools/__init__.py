"""Servers outside whose tools runs may use."""
