"""The command line: arguments in, text out. What a command does is in the rooms below; nothing is decided here."""
