"""Trees, forests and boosting from noisy counts in public bins."""
