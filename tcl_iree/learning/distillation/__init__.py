"""Carry what was learned on some platforms to the next, and forget none of them."""
