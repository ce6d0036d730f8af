"""The hand that applies a plan: on a clone, verified, exchanged in one step, undone at will."""
