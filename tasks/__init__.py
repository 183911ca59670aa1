"""The work of Colloquy: one subpackage per stage, and the foundation they stand on."""
