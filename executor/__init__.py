"""The authority: it records, decides and acts, and knows nothing of Slack."""
