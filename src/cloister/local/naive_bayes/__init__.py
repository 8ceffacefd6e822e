"""Naive Bayes from local reports: one report per person, about one question that a public coin chose.

Devices call `report` or `randomize` of a model; only the reports leave them. The collector calls `fit`, and then
`predict` as often as it likes.
"""
