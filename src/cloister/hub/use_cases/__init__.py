"""What people do in the hub: every capability once, called by the API and by the pages alike.

Each use case takes an open hub or a session, somebody who asks, and plain values. What runs on data is a service
(`cloister.hub.services`); `use_cases.jobs` decides, plans, pays, works and keeps for it.
"""
