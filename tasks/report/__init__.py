"""The report of a build: views are read, one HTML file is written (`colloquy report`)."""
