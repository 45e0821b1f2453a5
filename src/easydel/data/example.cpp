#include "easydel/data/example.h"

#include "easydel/base/error.h"

namespace easydel::data {

int64_t Example::labelled() const {
  int64_t count = 0;
  for (const int32_t label : labels) count += label != no_label;
  return count;
}

void Example::add_sequence(std::span<const int32_t> ids, std::span<const uint8_t> learn) {
  check(learn.empty() || learn.size() == ids.size(), "a mask of ", learn.size(), " for ", ids.size(), " tokens");
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  for (size_t i = 1; i < ids.size(); ++i) labels.push_back(learn.empty() || learn[i] ? ids[i] : no_label);
  if (!ids.empty()) labels.push_back(no_label);
  lengths.push_back(static_cast<int32_t>(ids.size()));
}

void Example::add_unshifted(std::span<const int32_t> ids, std::span<const uint8_t> learn) {
  check(learn.empty() || learn.size() == ids.size(), "a mask of ", learn.size(), " for ", ids.size(), " tokens");
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  for (size_t i = 0; i < ids.size(); ++i) labels.push_back(learn.empty() || learn[i] ? ids[i] : no_label);
  lengths.push_back(static_cast<int32_t>(ids.size()));
}

}  // namespace easydel::data
