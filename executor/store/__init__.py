"""The only layer that speaks SQL: one thin module for each table's named statements."""
