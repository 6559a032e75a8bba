"""Assembling the product: options, start and stop. It puts rooms together and holds no rules of its own."""
