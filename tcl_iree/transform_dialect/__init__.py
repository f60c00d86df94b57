"""Schedule families, their scripts, and libraries of them."""
