"""A stand-in: a module is its text."""


class Module:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text
