// The elements of a JSON file that is one list, one after the other: no more than an element is in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "easydel/data/byte_stream.h"

namespace easydel::data {

// What is wrong with a list, and where.
struct ListError {
  int64_t line = 0;  // from 1
  std::string_view problem;
};

// Calls `element(text, line)` with the text of each element and the line it begins in, until it returns false. The
// elements are not checked; the commas between them are. Throws ListError, or ByteStream's errors.
bool for_each_element(ByteStream& stream, const std::function<bool(std::string_view, int64_t)>& element);

}  // namespace easydel::data
