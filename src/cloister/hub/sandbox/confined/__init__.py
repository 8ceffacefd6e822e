"""What runs inside of the confined processes: standard library only, imported without the rest of cloister."""
