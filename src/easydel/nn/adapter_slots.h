// Adapters that each sequence of a pass chooses for itself (Stream::sequence_adapters). Every weight of a model is a
// slot; a loaded adapter has parts for some of them. A row is computed with its sequence's adapter alone, so it has the
// same bits in any company.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "easydel/nn/adapted_weight.h"
#include "easydel/nn/weight_policy.h"

namespace easydel::nn {

// An adapter that is ready to be computed with. It never changes: replacing one makes another.
class LoadedAdapter {
 public:
  // Its part for one slot; empty: it leaves the weight as it is.
  struct Part {
    std::shared_ptr<WeightAdapter> weight = {};
    std::vector<std::shared_ptr<HeadAdapter>> heads = {};  // for AdapterSlots::Slot::heads, in the same order
  };
  // `kept`: what the parts refer to.
  LoadedAdapter(std::string name, uint64_t version, std::vector<Part> parts, std::shared_ptr<const void> kept)
      : name_(std::move(name)), version_(version), parts_(std::move(parts)), kept_(std::move(kept)) {}

  const std::string& name() const { return name_; }
  // No two adapters of a process have the same one, so that what was computed with an adapter can be told by it.
  uint64_t version() const { return version_; }
  const Part& at(size_t slot) const { return parts_[slot]; }

 private:
  std::string name_;
  uint64_t version_;
  std::vector<Part> parts_;
  std::shared_ptr<const void> kept_;
};

// The weights of a model that adapters may change, as the last of its policies.
class AdapterSlots final : public WeightPolicy {
 public:
  struct Slot {
    std::string module;  // the layer's path: "model.layers.0.self_attn.q_proj"
    Entry* entry = nullptr;
    bool shared = false;  // an output layer that reads the embedding `entry`
    std::shared_ptr<Weight> base = {};
    std::vector<HeadRows> heads = {};  // the parts of each head that layers read (Weight::by_head)
  };

  std::shared_ptr<Weight> linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                 bool shared) override;
  std::shared_ptr<Weight> embedding(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight) override;
  std::shared_ptr<Weight> router(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight) override;

  const std::deque<Slot>& slots() const { return slots_; }

 private:
  std::shared_ptr<Weight> add(Slot slot);

  std::deque<Slot> slots_;
};

}  // namespace easydel::nn
