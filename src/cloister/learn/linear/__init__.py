"""Linear models: logistic and linear regression."""
