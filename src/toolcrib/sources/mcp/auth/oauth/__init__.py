"""OAuth round the SDK's: whose tokens, when they are renewed, and what may go wrong with it."""
