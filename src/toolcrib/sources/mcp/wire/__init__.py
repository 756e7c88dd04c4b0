"""Everything that knows the SDK's insides, and what it stands on: processes and HTTP."""
