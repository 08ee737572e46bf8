"""b = alpha * a^T: words are transposed by DMA alone, halves of words with the help of the cores."""
