// Recorded runs of SFTTrainer.
#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/sft_config.h"

namespace easydel::probe {
namespace {

void read_sft(Arguments& arguments, const Value&, ReplayCase& to) {
  auto out = std::make_shared<train::SftConfig>();
  out->label_smoothing = arguments.number("label_smoothing_factor", 0);
  const std::string loss = arguments.word("loss_type", "nll");
  if (loss == "dft") {
    out->loss_type = train::TokenLoss::dft;
    out->label_smoothing = 0;  // TRL's smoothing applies only to the plain loss
  } else if (loss != "nll" && loss != "chunked_nll") {
    arguments.not_built("loss_type", loss);
  }
  ignore_rows(arguments);
  to.trainer.use<train::SftConfig>(out);
}

}  // namespace

std::vector<data::Example> language_rows(const Value& line, const std::string& where) {
  const RecordedRows ids = rows_of(line, "input_ids", where), labels = rows_of(line, "labels", where);
  const RecordedRows mask = rows_of(line, "attention_mask", where), positions = rows_of(line, "position_ids", where);
  if (ids.empty() || labels.size() != ids.size()) refuse(where, "needs input_ids and labels");
  std::vector<data::Example> out;
  for (size_t i = 0; i < ids.size(); ++i)
    out.push_back(example_of(ids[i], mask.empty() ? nullptr : &mask[i], labels[i],
                             mask.empty() && !positions.empty() ? &positions[i] : nullptr));
  return out;
}

std::vector<ReplayMethod> replayed_language() { return {{"SFTTrainer", read_sft, language_rows}}; }

}  // namespace easydel::probe
