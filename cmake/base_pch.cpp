// Holds the precompiled header of the layers without torch.
