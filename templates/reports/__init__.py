"""Reports: which rows decide, which jobs are one row, which words are explained, what fits."""
