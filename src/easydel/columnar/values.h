// Converts a cell of an Arrow array to the value that a JSON row would hold.
#pragma once

#include <arrow/type_fwd.h>

#include <stdexcept>

#include "easydel/base/document.h"

namespace easydel::columnar {

// The cell cannot be represented; what() is the text after "field 'x': ".
struct NoValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How bytes are read: `text` requires UTF-8, `raw` keeps any bytes unchanged in the text of the value.
enum class Bytes : uint8_t { text, raw };

// `array` must be fully validated. Throws NoValue.
Value value_at(const arrow::Array& array, int64_t index, Bytes bytes = Bytes::text);

}  // namespace easydel::columnar
