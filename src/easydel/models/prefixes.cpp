#include "easydel/models/prefixes.h"

#include <algorithm>

namespace easydel::models {

int64_t alike_length(const Model& model) {
  int64_t limit = 0;
  const auto limit_to = [&limit](int64_t length) {
    if (length > 0) limit = limit == 0 ? length : std::min(limit, length);
  };
  limit_to(model.turning_length());
  limit_to(model.restart_length());
  if (const Value* const chosen = model.config().find("index_topk")) limit_to(chosen->as_int().value_or(0));
  return limit;
}

}  // namespace easydel::models
