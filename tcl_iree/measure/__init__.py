"""Build and run candidates in processes of their own, and say what they cost or why they failed."""
