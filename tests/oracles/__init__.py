"""Slow, literal versions of every formula, written from the definitions and not from the code.

Sums are sums and products are products, in plain loops over Python floats: no recursion over time, no
log space, no vectorisation.  Arguments and results are nested lists or NumPy arrays of float64.
"""
