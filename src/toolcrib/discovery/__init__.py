"""Which tools a conversation has in view: found when asked for, kept while used, within bounds."""
