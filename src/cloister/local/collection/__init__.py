"""Collecting more than one report: several attributes, repetitions, chosen levels, and what they cost one person.

Each module states the total that one person pays for everything that leaves their device, not the cost of one report.
"""
