// Where a layer is in the model while it is built. A layer asks its scope for its parameters; it states sizes and
// roles, never where values come from, how they are sharded or in which dtype they are stored.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/nn/head_plan.h"
#include "easydel/nn/parameter.h"
#include "easydel/ops/moe.h"

namespace easydel::nn {

class WeightPolicy;

// The distribution of a parameter that no checkpoint has.
struct Initial {
  enum class Kind : uint8_t { normal, zeros, ones, constant, each };
  Kind kind = Kind::zeros;
  double deviation = 0.0;  // normal
  double cutoff = 0.0;     // normal: truncated at this many deviations from 0; 0: not truncated
  int64_t zero_row = -1;   // a row that is zero nevertheless; -1: none
  double value = 0.0;      // constant
  std::function<double(int64_t last, double uniform)> element = {};  // each

  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  static Initial uniform(double bound);  // in [-bound, bound)
  static Initial zeros() { return {Kind::zeros}; }
  static Initial ones() { return {.kind = Kind::ones, .value = 1.0}; }
  static Initial constant(double value) { return {.kind = Kind::constant, .value = value}; }
  // Of an element's index along the last dimension and a random number in [0, 1) of its own.
  static Initial each(std::function<double(int64_t last, double uniform)> element) {
    return {.kind = Kind::each, .element = std::move(element)};
  }
};

inline Initial Initial::uniform(double bound) {
  return each([bound](int64_t, double u) { return (2.0 * u - 1.0) * bound; });
}

// What all scopes of one model share while it is built.
struct Building {
  ParameterTable& table;
  at::ScalarType compute = at::kFloat;
  std::shared_ptr<const collective::Team> team = collective::Team::alone();
  // Decides layout and slice of an entry (mesh and partition rules); null: every shard is whole.
  std::function<void(Entry&)> place;
  // Creates entry.shard: this rank's slice, in its dtype, from the first of `sources` that the checkpoint has, or from
  // `initial`. Sets entry.source to the source that was used.
  std::function<void(Entry&, const Initial&, const std::vector<TensorSource>& sources)> fill;
  // Asked in order how products read each weight (nn/weight_policy.h).
  std::vector<std::shared_ptr<WeightPolicy>> weight_policies;
  ops::MoeMethod moe_method = ops::MoeMethod::fused_moe;
  HeadPlan head;
  bool both_sides = false;     // config.json says that tokens of this decoder attend in both directions
  double normal_cutoff = 0.0;  // Initial::cutoff of every normal value
};

struct ParameterOptions {
  Split split = Split::none;
  Initial initial = {};
  std::string_view easydel_name = {};  // of the leaf in EasyDeL's path: "kernel", "scale", ...; empty: the name
  bool transposed = false;             // the checkpoint holds [in, out]
  Use use = Use::whole;
  int use_dimension = 0;
  // The ways in which checkpoints may hold it, the usual one first; empty: one tensor of its own name.
  std::vector<TensorSource> sources = {};
  bool exact = false;  // stored and computed in fp32, whatever the model's dtype
  bool trainable = true;
  bool router = false;   // Entry::router
  bool adapter = false;  // Entry::adapter: it starts from `initial`
  double rate = 1;       // Entry::rate
};

class Scope {
 public:
  explicit Scope(Building& building) : building_(&building) {}

  Scope operator/(std::string_view name) const;  // a dotted name is several steps
  Scope operator/(int64_t index) const { return *this / std::string_view(std::to_string(index)); }
  Scope unit(int index) const;  // what is built below belongs to layer `index`
  Scope head() const;           // what is built below belongs to the head
  // Layers that are placed below compute the tokens of this stream of a pass. Every part of a model states its own.
  Scope on_stream(std::string_view name) const;
  // The checkpoint holds the weights of linear layers built below as [in, out].
  Scope with_transposed_weights() const;

  Parameter parameter(std::string_view name, std::vector<int64_t> shape, Role role,
                      const ParameterOptions& options) const;

  // How this linear layer reads an embedding that another layer holds.
  std::shared_ptr<Weight> reader_of(Parameter shared) const;

  // All parameters that were created since an earlier mark: those of a layer built in between.
  size_t mark() const { return building_->table.entries().size(); }
  std::vector<Parameter> since(size_t mark) const;

  const std::string& path() const { return path_; }
  const std::string& stream() const { return stream_; }
  bool transposed_weights() const { return transposed_weights_; }
  at::ScalarType compute() const { return building_->compute; }
  const collective::Team& team() const { return *building_->team; }
  ops::MoeMethod moe_method() const { return building_->moe_method; }

 private:
  void set_readers(Entry& entry) const;

  Building* building_;
  std::string path_, stream_;
  int unit_ = -1;
  bool head_ = false, transposed_weights_ = false;
};

}  // namespace easydel::nn
