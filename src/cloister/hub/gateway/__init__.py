"""The door: every request is identified, checked, authorized and audited here, and nowhere else."""

from cloister.hub.gateway.guard import CurrentAccess, CurrentHub, CurrentSignIn, GuardedRouter, load_routers

__all__ = ["CurrentAccess", "CurrentHub", "CurrentSignIn", "GuardedRouter", "load_routers"]
