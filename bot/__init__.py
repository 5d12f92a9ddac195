"""Everything that a person or another program touches; it enters the executor by its engine."""
