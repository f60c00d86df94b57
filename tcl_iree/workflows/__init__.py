"""The loops that tie the rooms together; the only place that knows every room."""
