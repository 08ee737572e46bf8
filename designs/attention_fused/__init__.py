"""FlashAttention fused into one herd of cores, with the cascade merging ranges of keys: the fourth mapping of the book."""
