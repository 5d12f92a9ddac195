"""The use cases: lock, decide, apply, commit; and only then act."""
