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
#include "easydel/train/sequence_logps.h"
#include "easydel/train/trainer.h"

namespace easydel::train {
namespace {

constexpr int64_t trial_tokens = 32;  // at most, of the smallest trial; the others have twice and four times as many
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

// Of the computation's dtype.
int64_t element_bytes(const models::Model& model) {
  const auto& entries = model.parameters().entries();
  return entries.empty() ? 4 : int64_t(c10::elementSize(entries.front().compute));
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

// Of what products read of the trainable weights while the model samples or scores without gradients.
int64_t panel_bytes(const models::Model& model) {
  int64_t bytes = 0;
  bool has_head = false;
  const auto of = [](const nn::Entry& entry) { return entry.elements() * int64_t(c10::elementSize(entry.compute)); };
  for (const nn::Entry& entry : model.parameters().entries()) {
    if (!entry.trainable || entry.role != nn::Role::weight) continue;
    bytes += of(entry);
    has_head = has_head || entry.head;
  }
  for (const nn::Entry& entry : model.parameters().entries())  // it is the output layer too
    if (!has_head && entry.trainable && entry.role == nn::Role::embedding &&
        entry.elements() == model.vocabulary() * entry.shape.back())
      return bytes + of(entry);
  return bytes;
}

int64_t pairs_of(const data::Example& example) {
  int64_t out = 0;
  for (const int32_t length : example.lengths) out += int64_t(length) * length;
  return out;
}

}  // namespace

// Forward and backward of micro-batches of a few tokens. No weight changes. What was counted stays where examples are
// too short for it.
void Trainer::measure_activations(const data::Example& example, bool of_method) {
  struct Trial {
    double tokens, pairs, bytes;
  };
  const auto trial = [&](int64_t tokens, size_t copies = 1) {
    const data::Example few = shortened(example, tokens);
    const MicroBatch micro(copies, &few);
    const RankBatch part = of_method ? rank_batch_of(micro) : RankBatch();
    const tensor::PeakWatch watch;
    // What a method that samples computes besides the scores of the tokens is small.
    const Tensor loss = of_method ? loss_of(part, forwarding(true), 1).sum
                                  : score_sequences(*parts_.model, flat_batch(micro), forwarding(true), {}).logps.sum();
    loss.backward();
    return Trial{double(copies * few.tokens.size()), double(copies) * double(pairs_of(few)), double(watch.bytes())};
  };
  // A model with a table of positions may have fewer of them than the longest trial's tokens.
  const int64_t positions = parts_.model->max_positions();
  const int64_t smallest =
      positions > 0 ? std::min(trial_tokens, positions * int64_t(example.lengths.size()) / 4) : trial_tokens;
  trial(smallest);  // makes gradients and copies of the weights
  const Trial low = trial(smallest), middle = trial(2 * smallest), high = trial(4 * smallest);
  const bool keeps_scores = parts_.model->attention() == ops::AttentionMechanism::vanilla;
  const Trial twice = keeps_scores ? trial(4 * smallest, 2) : Trial{};
  optimizer_->drop_gradients();
  if (middle.tokens <= low.tokens || high.tokens <= middle.tokens || middle.bytes <= low.bytes) return;
  ActivationCost cost;
  const auto per_token = [](const Trial& a, const Trial& b) { return (b.bytes - a.bytes) / (b.tokens - a.tokens); };
  const auto pairs_per_token = [](const Trial& a, const Trial& b) {
    return (b.pairs - a.pairs) / (b.tokens - a.tokens);
  };
  // Scores of all pairs grow with the square.
  const double more = std::max(0.0, per_token(middle, high) - per_token(low, middle));
  const double per_pair = keeps_scores ? more / (pairs_per_token(middle, high) - pairs_per_token(low, middle)) : 0;
  cost.per_token = per_token(low, middle) - per_pair * pairs_per_token(low, middle);
  cost.last_layer = last_layer_bytes(layer_shapes(parts_.model->config()), element_bytes(*parts_.model));
  const int64_t vocabulary = parts_.model->vocabulary();
  cost.per_logit_row = 2.0 * 4 * double(vocabulary);
  cost.rows_in_chunk = config().loss().chunk_token_size.value_or(chunk_rows(vocabulary));
  const double logits = cost.per_logit_row * double(trial_labels);
  if (keeps_scores) {
    // All sequences' scores are kept, and those of one are worked on.
    const double kept = twice.bytes - high.bytes - cost.per_token * high.tokens - logits;
    cost.per_pair = std::clamp(kept / high.pairs, 0.0, per_pair);
    cost.per_longest_pair = (per_pair - cost.per_pair) * double(example.lengths.size());
  }
  cost.fixed = std::max(0.0, low.bytes - cost.per_token * low.tokens - per_pair * low.pairs - logits);
  plan_.memory.activations = cost;
}

void Trainer::plan_memory() {
  MemoryPlan& memory = plan_.memory;
  memory.micro_batches = plan_.micro_batches;
  struct {
    int64_t step = 0, tokens = -1;
    size_t micro = 0, example = 0;
  } longest;
  const std::optional<Method::SampledSizes> sizes =
      parts_.trainer.facts().samples ? method_->sampled_sizes() : std::nullopt;
  const bool learns_rows = !sizes;
  const int64_t completion = sizes ? sizes->completion_tokens : 0;
  const bool trains = training_ && config().do_train && learns_rows;
  const int64_t looked_at = trains && training_->is_stream() ? 8 : 1000;
  for (int64_t step = plan_.from_step; trains && step < std::min(plan_.steps, plan_.from_step + looked_at); ++step)
    for (size_t m = 0; const std::vector<ExampleSize>& micro : source_->sizes(step)) {
      const auto [begin, end] = ranks_.rows(int64_t(micro.size()));
      int64_t tokens = 0, labelled = 0, pairs = 0;  // of this rank
      for (size_t i = 0; i < micro.size(); ++i) {
        if (micro[i].tokens > longest.tokens) longest = {step, micro[i].tokens, m, i};
        if (int64_t(i) < begin || int64_t(i) >= end) continue;
        tokens += micro[i].tokens;
        labelled += micro[i].labelled;
        pairs += micro[i].tokens * micro[i].tokens;
      }
      memory.tokens = std::max(memory.tokens, tokens);
      memory.labelled = std::max(memory.labelled, labelled);
      memory.pairs = std::max(memory.pairs, pairs);
      ++m;
    }
  if (!learns_rows && sampler_) {
    const int64_t length = plan_.longest + completion, ranks = std::max<int64_t>(1, ranks_.parts());
    memory.completions = sampler_->memory_bytes(std::min(sizes->completions, Sampler::default_batch), length);
    memory.tokens = sizes->sequences / ranks * length;
    memory.labelled = sizes->sequences / ranks * completion;
    memory.pairs = memory.tokens * length;
    memory.longest_pairs = length * length;
    // A reference that is a copy of the model is packed, too; that of a folder is packed in its place.
    const bool copied = parts_.trainer.has_reference() && !parts_.side.reference.model;
    memory.panels = panel_bytes(*parts_.model) * (copied ? 2 : 1);
  }
  const bool can_measure = parts_.model->device() == at::kCPU && tensor::kept_memory_is_used();
  const bool measures_samples = can_measure && training_ && config().do_train && !learns_rows && sampler_;
  const bool measurable = can_measure && (longest.tokens >= 0 || measures_samples);
  if (longest.tokens >= 0) memory.longest_pairs = longest.tokens * longest.tokens;
  memory.activations =
      counted_activations(layer_shapes(parts_.model->config()),
                          {.checkpointing = parts_.checkpointing,
                           .element_bytes = element_bytes(*parts_.model),
                           .keeps_scores = parts_.model->attention() == ops::AttentionMechanism::vanilla,
                           .vocabulary = parts_.model->vocabulary(),
                           .rows_in_chunk = config().loss().chunk_token_size.value_or(0)});
  if (measures_samples) {
    std::vector<int32_t> ids(size_t(trial_tokens) * 4);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(int64_t(i) % parts_.model->vocabulary());
    measure_activations(learned_example({}, ids), false);
  } else if (measurable) {
    const std::vector<MicroBatch> micro_batches = source_->step(longest.step);
    const data::Example& example = *micro_batches[longest.micro][longest.example];
    measure_activations(example);
    // Sizes do not say that an example has several sequences; the longest one stands for all.
    memory.pairs =
        int64_t(double(memory.pairs) * double(pairs_of(example)) / double(std::max<int64_t>(1, memory.longest_pairs)));
    const int64_t length = *std::ranges::max_element(example.lengths);
    memory.longest_pairs = length * length;
  }
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
  const std::vector<std::string> keys =
      what_would_fit(memory, most,
                     {.accumulation = micro_batches_of(plan_.update, ranks_.parts()),
                      .longest = learns_rows ? plan_.longest : completion,
                      .recomputes = parts_.checkpointing.kind == nn::Checkpointing::nothing_saveable,
                      .is_fp32 = element_bytes(*parts_.model) == 4,
                      .prompt = learns_rows ? 0 : plan_.longest,
                      .length_key = learns_rows ? "trainer.max_length" : "trainer.max_completion_length"});
  refuse("memory",
         str("the run needs ", memory.text(), "; ",
             free ? str(free->limit, " leaves ", bytes_text(most)) : std::string("another rank has less")),
         keys.empty() ? std::string("use a smaller model, or a machine with more memory")
                      : "this would fit: " + join(keys, "; or "));
}

}  // namespace easydel::train
