"""From what a server lists to tools: named, compared with before, and callable."""
