"""Private queries: answers with a known price and a known error, by method or by SQL."""
