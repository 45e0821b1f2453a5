// The precompiled header of tests without torch.
#include <gtest/gtest.h>

#include "base_pch.h"
