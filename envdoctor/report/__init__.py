"""Turning values into text: one function a format, and the one sanitiser before any output."""
