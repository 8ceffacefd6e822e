"""What every capability stands on: guarantees, results, randomness, exact numbers, validation, registry."""
