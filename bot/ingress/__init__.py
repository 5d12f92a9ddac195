"""The door for what Slack sends: size, signature, age and replay are judged before its meaning."""
