"""One file a command of `colloquy`: arguments in, words and exit codes out. What a command does lies elsewhere."""
