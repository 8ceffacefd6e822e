"""Tools to test private algorithms: statistics, exact probabilities, laws, golden examples, a zoo of bugs."""
