#include "easydel/esurge/guided_rows.h"

#include <algorithm>

#include "easydel/generation/processors.h"

namespace easydel::esurge {

void GuidedRows::add(int64_t choice, bool negative, std::span<const float> logits) {
  Rows& own = rows_[size_t(choice)];
  (negative ? own.after_negative : own.after_prompt).assign(logits.begin(), logits.end());
}

bool GuidedRows::has_all() const {
  return std::ranges::none_of(rows_,
                              [](const Rows& own) { return own.after_prompt.empty() || own.after_negative.empty(); });
}

std::vector<float> GuidedRows::guided(int64_t choice) const {
  std::vector<float> out = rows_[size_t(choice)].after_prompt, negative = rows_[size_t(choice)].after_negative;
  generation::log_softmax(out);
  generation::log_softmax(negative);
  generation::guide(out, negative, scale_);
  return out;
}

void GuidedRows::clear() {
  for (Rows& own : rows_) own.after_prompt.clear(), own.after_negative.clear();
}

}  // namespace easydel::esurge
