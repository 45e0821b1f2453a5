#include "easydel/probe/replay_methods.h"

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::probe {

std::span<const ReplayMethod> replay_methods() {
  static const std::vector<ReplayMethod> all = [] {
    std::vector<ReplayMethod> out;
    for (const auto& group : {replayed_language(), replayed_pairs(), replayed_marks(), replayed_classes(),
                              replayed_teaching(), replayed_groups(), replayed_online()})
      out.insert(out.end(), group.begin(), group.end());
    return out;
  }();
  return all;
}

void ignore_rows(Arguments& arguments) {
  arguments.ignore({"dataset_text_field", "dataset_kwargs", "eos_token", "packing", "packing_strategy", "eval_packing",
                    "completion_only_loss", "assistant_only_loss"});
}

void refuse_smoothing(Arguments& arguments) {
  if (const double factor = arguments.number("label_smoothing_factor", 0); factor != 0)
    arguments.not_built("label_smoothing_factor", str(factor));
}

const ReplayMethod& replay_method(const std::string& trainer, const std::string& where) {
  std::vector<std::string> known;
  for (const ReplayMethod& method : replay_methods()) {
    if (method.trainer == trainer) return method;
    known.emplace_back(method.trainer);
  }
  refuse(where, "trainer " + trainer + " is not built yet", "built: " + join(known, ", "));
}

}  // namespace easydel::probe
