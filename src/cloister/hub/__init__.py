"""The hub: institutions share protected data, and people answer surveys, without trusting a server with secrets.

Layers, imports downwards only: ``app > api | web > gateway > services > store | jobs > domain``.
"""
