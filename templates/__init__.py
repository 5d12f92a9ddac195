"""Texts of cards, mails and pages, shipped as package data and read through the package loader."""
