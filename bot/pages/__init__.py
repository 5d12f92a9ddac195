"""Pages for people, beside Slack."""
