"""One small module a provider; vendor exceptions become ours at this border."""
