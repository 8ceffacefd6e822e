"""Requests for access: asked for, talked about, decided, revoked, expired."""
