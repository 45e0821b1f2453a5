#include "easydel/train/reference.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>

#include <cstring>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/models/adapter.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t tokens_at_a_time = 4096;

// Whether the model without its adapters is the model that they were put on: no parameter of its own has changed.
bool adapters_can_be_left_out(const models::Model& model) {
  if (model.adapters().empty()) return false;
  for (const nn::Entry& entry : model.parameters().entries())
    for (const auto& adapter : model.adapters())
      if (adapter->original(entry).defined()) return false;
  return true;
}

// A hash of the shards that this process has.
uint64_t hash_of(const models::Model& model) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over 64-bit words
  for (const nn::Entry& entry : model.parameters().entries()) {
    if (!entry.shard.defined() || entry.adapter) continue;
    const Tensor values = entry.shard.detach().to(at::kCPU).contiguous();
    const auto* const bytes = static_cast<const unsigned char*>(values.data_ptr());
    for (size_t at = 0; at < size_t(values.nbytes()); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min(sizeof word, size_t(values.nbytes()) - at));
      hash = (hash ^ word) * 0x100000001b3;
    }
  }
  return hash;
}

// Equal on all ranks, which may have different shards.
std::string hash_over_ranks(const models::Model& model, const Ranks& ranks) {
  double low = double(hash_of(model) & 0xffffffffff), high = double(hash_of(model) >> 24);
  double sums[2] = {low, high};  // of 40 bits, so exact for thousands of ranks
  ranks.sum_all(sums);
  return str(int64_t(sums[0]), "-", int64_t(sums[1]));
}

// What an earlier run kept; empty: nothing for this fingerprint.
std::vector<float> kept_numbers(const fs::path& file, const std::string& fingerprint, size_t count) {
  if (!files::is_file(file)) return {};
  try {
    const auto kept = weights::SafetensorsFile::open(file);
    const auto found = kept->header().metadata.find("fingerprint");
    if (found == kept->header().metadata.end() || found->second != fingerprint || !kept->has("numbers")) return {};
    const Tensor numbers = tensor::from_view(kept->at("numbers"));
    if (numbers.scalar_type() != at::kFloat || numbers.numel() != int64_t(count)) return {};
    const auto* const values = numbers.const_data_ptr<float>();
    return {values, values + count};
  } catch (const UserError& error) {
    log::info("what was kept of the reference cannot be read and is computed again: ", error.headline());
    return {};
  }
}

void keep_numbers(const fs::path& file, const std::string& fingerprint, std::vector<float>& numbers) {
  files::make_directories(file.parent_path());
  const Tensor values = at::from_blob(numbers.data(), {int64_t(numbers.size())}, at::kFloat);
  const weights::OutTensor out = tensor::to_file("numbers", values, at::kFloat);
  weights::write_safetensors(file, {&out, 1}, {{"format", "pt"}, {"fingerprint", fingerprint}});
}

// The trained model may have more: adapters, heads.
void refuse_other_shape(const models::Model& reference, const models::Model& trained) {
  const char* const remedy = "give one of the same shape; without the section, it is the model as it starts";
  for (const nn::Entry& entry : reference.parameters().entries()) {
    const nn::Entry* const own = trained.parameters().find(entry.path);
    if (!own)
      refuse("reference_model", "it has another shape than the trained model, which has no " + entry.path, remedy);
    if (own->shape != entry.shape)
      refuse("reference_model",
             easydel::str("it has another shape than the trained model: ", entry.path, " is ",
                          at::IntArrayRef(entry.shape), " instead of ", at::IntArrayRef(own->shape)),
             remedy);
  }
  if (reference.layers() != trained.layers())
    refuse("reference_model", str("it has ", reference.layers(), " layers, and the trained model ", trained.layers()),
           remedy);
}

}  // namespace

Reference::Reference(const Setting& setting, std::optional<Following> following) : following_(following) {
  model_ = setting.side.reference.model;
  if (!setting.model) return;
  const models::Model& trained = *setting.model;
  if (following_ && !trained.adapters().empty())
    refuse("trainer.sync_ref_model", "a reference that follows the model is not built yet for adapters",
           "leave it out: the reference is the model without its adapter");
  if (model_) {
    if (model_->vocabulary() != trained.vocabulary())
      refuse("reference_model",
             str("it has ", model_->vocabulary(), " tokens, and the trained model ", trained.vocabulary()),
             "give a reference with the same tokenizer; without the section, it is the model as it starts");
    refuse_other_shape(*model_, trained);
  } else if (adapters_can_be_left_out(trained)) {
    model_ = setting.model;
    without_adapters_ = true;
  } else {
    model_ = models::copy_model(trained);
  }
}

SequenceScores Reference::score(const Batch& batch, Forwarding how, nn::ScoreOptions options) const {
  check(exists(), "there is no reference");
  const c10::AutoGradMode no_grad(false);
  how.training = false;
  how.metrics = false;
  how.checkpointing = nn::Checkpointing::none;
  how.routers = nullptr;
  how.adapters = !without_adapters_;
  return score_sequences(*model_, batch, how, options);
}

Sampler Reference::sampler(std::shared_ptr<const text::Tokenizer> tokenizer) const {
  check(exists(), "there is no reference");
  const Sampler out(model_, std::move(tokenizer));
  return without_adapters_ ? out.without_adapters() : out;
}

void Reference::precompute(const Examination& of, const Column& column) {
  struct Place {
    data::Dataset* set = nullptr;
    int64_t index = 0;
  };
  std::vector<Place> examples;
  std::string data;
  size_t count = 0;
  for (data::Dataset* const set : of.sets) {
    data += set->fingerprint();
    for (int64_t i = 0; i < set->examples_count(); ++i)
      if (const data::Example example = set->at(i); !example.find(column.name))
        examples.push_back({set, i}), count += example.lengths.size();
  }
  if (examples.empty()) return;
  const std::string fingerprint = str(column.name, " ", column.kind, " of ", hash_over_ranks(*model_, of.ranks),
                                      " for ", data, " by ", of.order_class);
  const fs::path file = of.folder.empty() ? fs::path() : of.folder / (column.name + ".safetensors");
  std::vector<float> numbers;
  if (!file.empty()) numbers = kept_numbers(file, fingerprint, count);
  const bool kept = !of.ranks.any(numbers.empty());
  if (!kept) numbers.assign(count, 0.0f);
  size_t done = 0;
  for (size_t begin = 0; begin < examples.size();) {
    std::vector<data::Example> part;
    int64_t tokens = 0;
    while (begin + part.size() < examples.size()) {
      const Place& place = examples[begin + part.size()];
      data::Example next = place.set->at(place.index);
      if (!part.empty() &&
          (next.lengths.size() != part[0].lengths.size() || tokens + int64_t(next.tokens.size()) > tokens_at_a_time))
        break;
      tokens += int64_t(next.tokens.size());
      part.push_back(std::move(next));
    }
    const size_t sequences = part[0].lengths.size();
    const c10::AutoGradMode no_grad(false);
    Tensor values;
    if (!kept) {
      std::vector<const data::Example*> batch;
      for (const data::Example& example : part) batch.push_back(&example);
      values = column.compute(column.collate(batch), of.forwarding).to(at::kCPU, at::kFloat).contiguous();
    }
    for (size_t e = 0; e < part.size(); ++e) {
      std::vector<float> own;
      for (size_t s = 0; s < sequences; ++s, ++done) {
        if (!kept) numbers[done] = values.const_data_ptr<float>()[s * part.size() + e];
        own.push_back(numbers[done]);
      }
      examples[begin + e].set->add_numbers(examples[begin + e].index, column.name, own);
    }
    begin += part.size();
  }
  if (kept) log::info("the reference's log-probabilities are read from ", file.string());
  if (!kept && !file.empty() && of.ranks.first()) keep_numbers(file, fingerprint, numbers);
  model_.reset();
}

void Reference::follow(const models::Model& model, int64_t step) const {
  if (!following_ || !model_ || step % following_->steps != 0) return;
  const c10::AutoGradMode no_grad(false);
  for (nn::Entry& entry : model_->parameters().entries()) {
    const nn::Entry* const now = model.parameters().find(entry.path);
    check(now, "the reference has a parameter that the model has not: ", entry.path);
    entry.shard.mul_(1 - following_->weight)
        .add_(now->shard.detach().to(entry.shard.scalar_type()), following_->weight);
    entry.written();
  }
}

void Reference::add_state(MethodState& state) const {
  if (!following_ || !model_) return;
  for (const nn::Entry& entry : model_->parameters().entries())
    state.tensors.push_back({"reference." + entry.path, entry.shard, &entry});
}

void Reference::restore(const SavedState& saved) const {
  if (!following_ || !model_) return;
  for (nn::Entry& entry : model_->parameters().entries()) {
    saved.copy_into(entry.shard, "reference." + entry.path, &entry);
    entry.written();
  }
}

}  // namespace easydel::train
