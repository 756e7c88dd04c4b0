"""Request checkers, written from the wire rules alone (shared/spec/providers.md), rule by rule.

They import nothing of toolcrib. Each refuses with the id of the rule that a request breaks; rules
marked ° there are notes and are not checked.
"""
