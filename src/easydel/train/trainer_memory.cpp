// How much memory a run needs, measured by a few tokens before the first step, and whether it fits.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/base/free_memory.h"
#include "easydel/base/names.h"
#include "easydel/nn/weight_forms.h"
#include "easydel/tensor/memory.h"
#include "easydel/train/trainer.h"

namespace easydel::train {
namespace {

constexpr int64_t trial_tokens = 32;  // of the smaller trial; the larger one has twice as many
constexpr int64_t trial_labels = 8;

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * int64_t(sysconf(_SC_PAGESIZE));
}

int64_t highest_resident_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

int64_t copy_bytes(const nn::ParameterTable& table) {
  int64_t bytes = 0;
  for (const nn::Entry& entry : table.entries())
    if (const Tensor copy = entry.forms ? entry.forms->copy() : Tensor(); copy.defined())
      bytes += int64_t(copy.nbytes());
  return bytes;
}

int64_t config_int(const models::Model& model, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const Value* value = model.config().find(name); value && value->as_int()) return *value->as_int();
  return 0;
}

// About what a step keeps for its backward: per token and layer the inputs of its products and norms, in fp32; with
// checkpointing one row a layer and one layer's share.
int64_t activation_estimate(const TrainerParts& parts, int64_t tokens) {
  const int64_t hidden = config_int(*parts.model, {"hidden_size", "n_embd"});
  const int64_t inner = config_int(*parts.model, {"intermediate_size", "n_inner"});  // 0: 4 * hidden, as gpt2 has it
  const int64_t layers = parts.model->layers();
  const int64_t one_layer = tokens * (8 * hidden + 3 * (inner ? inner : 4 * hidden)) * 4;
  const bool kept = parts.checkpointing.kind != nn::Checkpointing::nothing_saveable;
  return kept ? layers * one_layer : one_layer + layers * tokens * hidden * 4;
}

// Tokens of each of the example's sequences, `tokens` of all together, with few labels.
data::Example shortened(const data::Example& whole, int64_t tokens) {
  data::Example out;
  std::vector<size_t> kept;
  // Any label that can occur: classes are not token ids.
  const auto labelled = std::ranges::find_if(whole.labels, [](int32_t label) { return label != data::no_label; });
  const int32_t label = labelled == whole.labels.end() ? data::no_label : *labelled;
  const auto each = std::max<int64_t>(2, tokens / int64_t(whole.lengths.size()));
  size_t begin = 0;
  for (const int32_t length : whole.lengths) {
    // A sequence that is too short is repeated.
    for (int64_t k = 0; length > 0 && k < each; ++k)
      kept.push_back(begin + size_t((length * each - each + k) % length));
    for (int64_t k = 0; length > 0 && k < each; ++k) {
      const size_t at = kept.size() - size_t(each - k);
      out.tokens.push_back(whole.tokens[kept[at]]);
      // The last token has no next one to predict.
      const bool learned = k + 1 < each && each - 1 - k <= trial_labels;
      out.labels.push_back(learned ? label : data::no_label);
    }
    if (length > 0) out.lengths.push_back(int32_t(each));
    begin += size_t(length);
  }
  for (data::Column column : whole.columns) {
    if (column.per == data::Column::Per::token)
      std::visit(
          [&](auto& list) {
            auto part = list;
            part.clear();
            for (const size_t i : kept) part.push_back(list[i]);
            list = std::move(part);
          },
          column.values);
    out.columns.push_back(std::move(column));
  }
  return out;
}

}  // namespace

// Forward and backward of two micro-batches of a few tokens. No weight changes.
void Trainer::measure_activations(const data::Example& example) {
  MemoryPlan& memory = plan_.memory;
  const auto peak_of = [&](int64_t tokens) {
    const data::Example few = shortened(example, tokens);
    const RankBatch part = rank_batch_of(MicroBatch{&few});
    const tensor::PeakWatch watch;
    const Loss loss = loss_of(part, forwarding(true), 1);
    loss.sum.backward();
    return std::pair(double(few.tokens.size()), double(watch.bytes()));
  };
  peak_of(trial_tokens);  // makes gradients and copies of the weights
  const auto [few, low] = peak_of(trial_tokens);
  const auto [more, high] = peak_of(2 * trial_tokens);
  optimizer_->drop_gradients();
  if (more <= few || high <= low) return;
  ActivationCost& cost = memory.activations;
  const int64_t vocabulary = parts_.model->vocabulary();
  cost.per_token = (high - low) / (more - few);
  cost.per_logit_row = 2.0 * 4 * double(vocabulary);
  cost.rows_in_chunk = config().loss().chunk_token_size.value_or(
      std::clamp<int64_t>((int64_t{16} << 20) / std::max<int64_t>(vocabulary, 1), 16, 4096));
  cost.fixed = std::max(0.0, low - cost.per_token * few - cost.per_logit_row * double(trial_labels));
}

void Trainer::plan_memory() {
  MemoryPlan& memory = plan_.memory;
  memory.micro_batches = plan_.micro_batches;
  struct {
    int64_t step = 0, tokens = -1;
    size_t micro = 0, example = 0;
  } longest;
  const bool trains = training_ && config().do_train && !parts_.trainer.facts().samples;
  for (int64_t step = plan_.from_step; trains && step < plan_.steps && step < plan_.from_step + 1000; ++step)
    for (size_t m = 0; const std::vector<ExampleSize>& micro : source_->sizes(step)) {
      const auto [begin, end] = ranks_.rows(int64_t(micro.size()));
      int64_t tokens = 0, labelled = 0;  // of this rank
      for (size_t i = 0; i < micro.size(); ++i) {
        if (micro[i].tokens > longest.tokens) longest = {step, micro[i].tokens, m, i};
        if (int64_t(i) < begin || int64_t(i) >= end) continue;
        tokens += micro[i].tokens;
        labelled += micro[i].labelled;
      }
      memory.tokens = std::max(memory.tokens, tokens);
      memory.labelled = std::max(memory.labelled, labelled);
      ++m;
    }
  const bool measurable = parts_.model->device() == at::kCPU && tensor::memory_use().peak > 0 && longest.tokens >= 0;
  if (measurable)
    measure_activations(*source_->step(longest.step)[longest.micro][longest.example]);
  else
    memory.activations.per_token = double(activation_estimate(parts_, 1));
  for (const nn::Entry& entry : parts_.model->parameters().entries())
    if (entry.trainable && entry.shard.defined() && (entry.head || entry.role == nn::Role::embedding))
      memory.first_gradient = std::max(memory.first_gradient, int64_t(entry.shard.nbytes()));
  memory.weights += copy_bytes(parts_.model->parameters());
  memory.side_models = side_bytes_;
  const int64_t live = resident_bytes() - int64_t(tensor::memory_use().kept);
  memory.rest = std::max<int64_t>(0, live - memory.weights - memory.side_models - memory.optimizer);
  memory.before = highest_resident_bytes();
  const std::optional<FreeMemory> free = free_memory();
  const int64_t most = free ? free->bytes + resident_bytes() : std::numeric_limits<int64_t>::max();
  if (!ranks_.any(measurable && memory.total() > most)) return;
  std::vector<int64_t> accumulation;
  for (int64_t parts = 2; parts <= plan_.update; ++parts)
    if (plan_.update % (parts * ranks_.parts()) == 0) accumulation.push_back(parts);
  const std::vector<std::string> keys = what_would_fit(
      memory, most, accumulation, plan_.longest, parts_.checkpointing.kind == nn::Checkpointing::nothing_saveable);
  refuse("memory",
         str("the run needs ", memory.text(), "; ",
             free ? str(free->limit, " leaves ", bytes_text(most)) : std::string("another rank has less")),
         keys.empty() ? std::string("use a smaller model, or a machine with more memory")
                      : "this would fit: " + join(keys, "; or "));
}

}  // namespace easydel::train
