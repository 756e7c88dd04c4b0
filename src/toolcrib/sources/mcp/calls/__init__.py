"""One call of a tool: its time, what is heard meanwhile, and whether it may be sent again."""
