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

// Receives the text of an element, and the line and the byte it begins at. False: enough.
using ElementSink = std::function<bool(std::string_view text, int64_t line, int64_t byte)>;

// Calls `element` for each element until it returns false. The elements are not checked; the commas between them are.
// Throws ListError, or ByteStream's errors.
bool for_each_element(ByteStream& stream, const ElementSink& element);
// The same for a stream that begins with an element of a list, at this byte and line of it.
bool for_each_element_from(ByteStream& stream, int64_t byte, int64_t line, const ElementSink& element);

}  // namespace easydel::data
