"""Finding the right tool among thousands, and keeping in view what is used."""
