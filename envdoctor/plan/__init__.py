"""One prescription: what the remedies of all findings demand together, solved, followed in thought, told."""
