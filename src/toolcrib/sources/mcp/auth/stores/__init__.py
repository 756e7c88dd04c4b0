"""Where tokens are kept, and that one at a time renews them; knows nothing of OAuth."""
