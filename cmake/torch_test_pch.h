// The precompiled header of tests that see torch.
#include <gtest/gtest.h>

#include "torch_pch.h"
