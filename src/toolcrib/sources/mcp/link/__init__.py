"""One connection: opened, asked, listed, closed, and what its failures mean."""
