// The precompiled header of every layer that sees torch. Small on purpose: what is added here is paid by all.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// c10/util/ApproximateClock.h includes all vector intrinsics for one function, __rdtsc: a quarter of this header.
#if defined(__GNUC__) && !defined(__clang__) && __has_include(<x86gprintrin.h>)
#include <x86gprintrin.h>
#define _X86INTRIN_H_INCLUDED
#endif

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#undef _X86INTRIN_H_INCLUDED
