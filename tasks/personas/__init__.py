"""Persona design: source personas deduplicated and sampled into pools, characters designed from them."""
