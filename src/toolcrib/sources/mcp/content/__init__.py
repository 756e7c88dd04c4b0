"""What comes through, in the protocol's shapes and in ours. Pure; nothing here is sent."""
