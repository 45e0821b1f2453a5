// A cell of an Arrow array as the value that a row of JSON would hold.
#pragma once

#include <arrow/type_fwd.h>

#include <stdexcept>

#include "easydel/base/document.h"

namespace easydel::columnar {

// What has no such form; what() says why, for "field 'x': ...".
struct NoValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `array` was validated in full. Throws NoValue.
Value value_at(const arrow::Array& array, int64_t index);

}  // namespace easydel::columnar
