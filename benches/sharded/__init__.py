"""Programs for several devices, and what they communicate before and after the rewriter."""
