// Holds the precompiled header of tests that see torch.
