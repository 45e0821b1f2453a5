// trainer_type: sparse_distillation. Distillation of the teacher's likeliest tokens alone: its distribution is that of
// its top k, scaled to sum 1.
#include "easydel/train/sparse_distillation_config.h"

#include "easydel/base/error.h"
#include "easydel/train/distilled_rows.h"

namespace easydel::train {

MethodEntry sparse_distillation() {
  return {"sparse_distillation", [](const Setting& setting) -> std::unique_ptr<Method> {
            const auto& config = setting.trainer.own_as<SparseDistillationConfig>();
            TeachingTerms terms = teaching_terms(config.distillation, setting.trainer.common);
            terms.teacher_top_k = config.own.top_k_teacher;
            if (terms.beta == 1)
              refuse("trainer.beta", "the reverse divergence from the teacher's likeliest tokens alone is infinite",
                     "give a beta below 1, or trainer_type: distillation");
            return std::make_unique<DistilledRows>(setting, config.distillation, std::move(terms),
                                                   config.samples.skip_apply_chat_template);
          }};
}

}  // namespace easydel::train
