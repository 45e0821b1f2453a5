// The precompiled header of every layer that sees torch. Small on purpose: what is added here is paid by all.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
