"""The parts of the sentence encoder: its files, its tokens, its network, windows of long texts, stored vectors."""
