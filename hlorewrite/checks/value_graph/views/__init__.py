"""One form for moves of elements, sums, products, reductions and matrix products, as XLA's simplifiers turn them."""
