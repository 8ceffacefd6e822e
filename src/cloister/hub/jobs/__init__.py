"""The queue of work in the hub's own database."""
