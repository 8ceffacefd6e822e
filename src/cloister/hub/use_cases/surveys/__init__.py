"""Surveys in the hub: drafts, publishing, invitations, answers and estimates."""
