"""Attacks on synthetic tables: singling out, linking, guessing and recognizing the people that they were made from."""
