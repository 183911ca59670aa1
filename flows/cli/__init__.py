"""The `colloquy` command: one file a command, arguments in, words and exit codes out."""
