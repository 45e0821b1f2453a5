// Whether a value is valid under a schema: a second opinion on constrained output, written without its code. Only the
// keywords that the walks of constrain_mask_test.cpp use; patterns are std::regex's.
#pragma once

#include "easydel/base/document.h"

namespace easydel::test {

bool is_valid(const Value& schema, const Value& value);

}  // namespace easydel::test
