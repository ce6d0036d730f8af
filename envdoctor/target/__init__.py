"""What an answer is for: cards, driver, Python, platform and versions, declared by a person or read."""
