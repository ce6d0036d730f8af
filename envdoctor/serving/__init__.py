"""The door for assistants: answers as tools of the Model Context Protocol, read-only and bounded."""
