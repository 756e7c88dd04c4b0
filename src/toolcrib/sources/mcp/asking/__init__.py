"""What servers ask of a conversation's host: the questions read, and relayed within their time."""
