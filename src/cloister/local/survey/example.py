"""A commented example of a survey file, made up from beginning to end."""

from __future__ import annotations

from cloister.data.schema_file import load_yaml
from cloister.local.survey.model import Survey

__all__ = ["EXAMPLE", "example_survey"]

EXAMPLE = """\
# A survey in which nobody has to trust whoever collects the answers.
#
# Each answer is changed at random on the respondent's own device, before anything is sent. The collector receives the
# changed reports only, and still learns what everybody together answered.
#
#   cloister survey plan THIS-FILE --margin 2                              how many people are needed for ±2 points
#   cloister survey simulate THIS-FILE --respondents 5000 -o made-up.jsonl  a rehearsal with made-up people
#   cloister survey aggregate THIS-FILE made-up.jsonl --report results.html what the reports say
schema: cloister.survey/1

# A name for machines: small letters, digits, hyphens. Give a changed survey a new one.
id: life-and-work-2026
title: Life and work 2026
# Who collects, and whom to ask. Respondents see it.
collector: Example Institute, survey@example.org
purpose: An example. No real person is asked.

# What respondents choose from, question by question. The number is epsilon: how much a report can tell about its
# sender. With epsilon 1, the odds of any two answers change by a factor of 2.72 at most; with 0.25 by 1.29; with 4
# by 54.6. "off" means: this question is not answered. More protection needs more respondents for the same margin.
levels: {off: null, low: 4, medium: 1, high: 0.25}
default_level: medium

questions:
  # Two answers. "pretend" is only for rehearsals: the shares that made-up people have. Respondents never see it.
  - id: married
    kind: yes_no
    text: Are you married?
    pretend: {no: 0.55, yes: 0.45}

  # One of several answers. Everything that can be answered has to be listed: free text cannot be protected.
  - id: occupation
    kind: single_choice
    text: What is your occupation?
    options: [Office and administration, Crafts and trades, Management, Farming and fishing, Cleaning and transport,
              Machine operation, Personal service, Household service, Science and teaching, Security, Sales,
              Technical support, Armed forces, Something else]
    pretend: {Office and administration: 12, Crafts and trades: 13, Management: 13, Farming and fishing: 3,
              Cleaning and transport: 5, Machine operation: 6, Personal service: 11, Household service: 1,
              Science and teaching: 14, Security: 2, Sales: 12, Technical support: 3, Armed forces: 1,
              Something else: 4}

  # Up to "most" of several answers. The protection is shared among the picks, so that a smaller "most" is better.
  # Here "pretend" has the share of people who pick each option.
  - id: commute
    kind: multiple_choice
    text: How do you get to work?
    options: [On foot, Bicycle, Bus or train, Car, I work at home]
    most: 2
    pretend: {On foot: 0.2, Bicycle: 0.2, Bus or train: 0.35, Car: 0.5, I work at home: 0.1}

  # A number between bounds that everybody knows. Its mean is estimated.
  - id: sleep
    kind: number
    text: How many hours did you sleep last night?
    bounds: [0, 16]
    pretend: {mean: 7.1, spread: 1.2}

  # A number that is counted in bins instead. Each bin holds its lower edge; the last one holds both.
  - id: age
    kind: number
    text: How old are you?
    bounds: [16, 100]
    whole: true
    bins: [16, 25, 35, 45, 55, 65, 100]
    pretend: {mean: 43, spread: 16}

  # A rating, from the lowest to the highest answer. This question has levels of its own.
  - id: satisfaction
    kind: rating
    text: How satisfied are you with your work, from 1 (not at all) to 5 (very)?
    options: [1, 2, 3, 4, 5]
    levels: {off: null, medium: 1, high: 0.5}
    default_level: medium
    pretend: {1: 6, 2: 13, 3: 27, 4: 36, 5: 18}
"""
"""The text of the example file."""


def example_survey() -> Survey:
    """Return the survey of the example file."""
    return Survey.from_dict(load_yaml(EXAMPLE, what="survey"))
