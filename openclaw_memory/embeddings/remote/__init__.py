"""One pipeline for embedding services behind a network: requests in a bounded pool of threads."""
