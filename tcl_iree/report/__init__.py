"""Tables and progress for people; nothing here computes."""
