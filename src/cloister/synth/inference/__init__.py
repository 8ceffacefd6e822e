"""Estimation of one distribution from noisy marginals: junction trees, sum-product, a smooth dual, systematic draws."""
