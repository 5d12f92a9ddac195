"""Commands, clicks and views: each parses, makes one call to the engine and answers."""
