"""Ticket desks outside: each closes a ticket by one frozen request and says what became of it."""
