// Holds the precompiled header of tests without torch.
