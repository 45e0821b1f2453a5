// The training methods, in alphabetical order.
#include <algorithm>
#include <array>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/train/method.h"

namespace easydel::train {

MethodEntry agentic_moshpit();
MethodEntry base();
MethodEntry bco();
MethodEntry cpo();
MethodEntry distillation();
MethodEntry dpo();
MethodEntry embedding();
MethodEntry gfpo();
MethodEntry gkd();
MethodEntry grpo();
MethodEntry gspo();
MethodEntry kto();
MethodEntry nash_md();
MethodEntry on_policy_distillation();
MethodEntry online_dpo();
MethodEntry orpo();
MethodEntry ppo();
MethodEntry prm();
MethodEntry ray();
MethodEntry reward();
MethodEntry rloo();
MethodEntry rlvr();
MethodEntry sdpo();
MethodEntry seq_kd();
MethodEntry sft();
MethodEntry simpo();
MethodEntry sparse_distillation();
MethodEntry tpo();
MethodEntry xpo();

namespace {

std::vector<MethodEntry>& all_methods() {
  static const std::array built_in{agentic_moshpit(),
                                   base(),
                                   bco(),
                                   cpo(),
                                   distillation(),
                                   dpo(),
                                   embedding(),
                                   gfpo(),
                                   gkd(),
                                   grpo(),
                                   gspo(),
                                   kto(),
                                   nash_md(),
                                   on_policy_distillation(),
                                   online_dpo(),
                                   orpo(),
                                   ppo(),
                                   prm(),
                                   ray(),
                                   reward(),
                                   rloo(),
                                   rlvr(),
                                   sdpo(),
                                   seq_kd(),
                                   sft(),
                                   simpo(),
                                   sparse_distillation(),
                                   tpo(),
                                   xpo()};
  static std::vector<MethodEntry> all(built_in.begin(), built_in.end());
  return all;
}

}  // namespace

std::span<const MethodEntry> methods() { return all_methods(); }

std::unique_ptr<Method> build_method(const Setting& setting) {
  for (const MethodEntry& entry : methods())
    if (entry.name == setting.trainer.common.trainer_type) return entry.build(setting);
  throw Bug(str("no method ", setting.trainer.common.trainer_type));
}

void register_method(const MethodConfig& config, std::unique_ptr<Method> (*build)(const Setting& setting),
                     const std::filesystem::path& library) {
  check(build != nullptr, "a method without what builds it");
  register_method_config(config, library);
  std::vector<MethodEntry>& all = all_methods();
  all.insert(std::ranges::upper_bound(all, config.name, {}, &MethodEntry::name), {config.name, build});
}

}  // namespace easydel::train
