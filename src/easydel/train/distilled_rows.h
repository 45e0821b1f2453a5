// A method that distils a teacher on rows as they are: what the words distillation and sparse_distillation share.
#pragma once

#include "easydel/train/language_rows.h"
#include "easydel/train/teaching.h"

namespace easydel::train {

class DistilledRows final : public Method {
 public:
  DistilledRows(const Setting& setting, const DistillationConfig& config, TeachingTerms terms,
                bool without_template = false)
      : rows_(setting, {.assistant_only = config.assistant_only_loss,
                        .completion_only = config.completion_only_loss,
                        .without_template = without_template}),
        teaching_(setting.side.teacher.model, setting.model.get(), std::move(terms)) {}

  data::Prepared prepare(const data::TypedRow& row) const override { return rows_.prepare(row); }
  Batch collate(std::span<const data::Example* const> examples) const override { return labelled_batch(examples); }
  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    return teaching_.loss(model, batch, forwarding);
  }

 private:
  LanguageRows rows_;
  Teaching teaching_;
};

}  // namespace easydel::train
