// The table of a model's parameters: what checkpoints, optimizers, sharding and adapters work on. There is no module
// base class; layers hold a Parameter (a stable entry), never a tensor.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/collective/team.h"
#include "easydel/mesh/layout.h"
#include "easydel/nn/tensor_source.h"
#include "easydel/tensor/torch.h"

namespace easydel::nn {

class Weight;
class WeightForms;
class WeightStack;

// What a parameter is for; initial values, weight decay and default partition rules follow from it.
enum class Role : uint8_t {
  weight,     // of a product, [out, in] as Hugging Face stores it; of experts, [experts, out, in]
  embedding,  // [vocabulary, size]
  norm,       // scale or bias of a norm: never decayed
  bias,       // never decayed
  other
};
// The dimension of a weight that is sharded over the tensor axis; of stacked experts, that of each expert.
enum class Split : uint8_t { none, output, input, vocabulary };

// What one rank of the tensor axis computes with a parameter.
enum class Use : uint8_t {
  whole,  // the same as all others, with the whole of it
  part,   // with its own part of one dimension: its heads, its inner units
  shared  // with the whole, but in a region where the ranks compute different things: its gradient is their sum
};

using mesh::Slice;

struct Entry {
  std::string path;            // Hugging Face's name: "model.layers.0.self_attn.q_proj.weight"
  std::string easydel_path;    // "model/layers/0/self_attn/q_proj/kernel"
  std::vector<int64_t> shape;  // global, in our storage order (Hugging Face's)
  Role role = Role::weight;
  Split split = Split::none;
  int unit = -1;      // layer index; -1: outside the stack
  bool head = false;  // of the head, which a checkpoint for another task lacks
  bool trainable = true;
  bool router = false;              // a router's weight
  bool adapter = false;             // added to the model by a policy: no checkpoint of the model holds it
  double rate = 1;                  // multiplies the learning rate
  TensorSource source;              // where its values come from in a checkpoint, and back
  Packing packing = Packing::none;  // in which checkpoints of the family may hold it instead
  mesh::PartitionSpec layout;       // resolved, in our storage order; one entry per dimension
  std::shared_ptr<const collective::Team> team = collective::Team::alone();  // the ranks that hold the shards

  Use use = Use::whole;
  int use_dimension = 0;  // Use::part

  // This rank's part. The leaf that the optimizer owns: fp32 while training (the master), else the parameter's dtype.
  // Its gradient is shard.grad(), of the same dtype. Undefined where `weight` is codes.
  Tensor shard;
  Slice slice;           // of `shard` in the global tensor
  uint64_t version = 0;  // counts writes of `shard`; derived copies (compute, packed) compare it

  // The copies of the shard that products read, which the optimizer may write. Null: nothing multiplies by it.
  std::shared_ptr<WeightForms> forms;
  // How products read it: its values through `forms`, or what the policies replaced that by. A weight of two dimensions
  // has the first, a stack of experts the second, and what no product reads has neither.
  std::shared_ptr<Weight> weight;
  std::shared_ptr<WeightStack> stack;
  at::ScalarType compute = at::kFloat;  // dtype of the computation
  // Of an embedding: the output layer that reads it, too, and how. Empty: none does.
  std::string tied_layer = {};
  std::shared_ptr<Weight> tied_weight = {};

  int64_t elements() const;  // of the global tensor
  // Called by whoever wrote `shard` in place (optimizer, loader): derived copies are refreshed before the next use.
  void written() { ++version; }
};

// The one rule for "linear layer", which quantization and adapters share: a weight [out, in] of a product, that of an
// output layer included. Routers, stacks of experts, embeddings and what adapters add are not linear layers.
bool is_linear(const Entry& entry);
// The name of the layer that the entry's weight belongs to: its path without ".weight".
std::string layer_name(const Entry& entry);

// A layer's handle; copies refer to the same entry. Valid as long as its table.
class Parameter {
 public:
  Parameter() = default;
  explicit Parameter(Entry* entry) : entry_(entry) {}
  explicit operator bool() const { return entry_ != nullptr; }
  Entry& entry() const { return *entry_; }
  // The values that this forward reads: gathered over the mesh, in the shard's dtype (ops round to the computation's),
  // with a gradient path to the shard if gradients are on. Of codes, the decoded values. The only place where a weight
  // is gathered.
  Tensor value() const;

 private:
  Entry* entry_ = nullptr;
};

// Addresses of entries stay valid for the table's life.
class ParameterTable {
 public:
  Entry& add(Entry entry);  // Bug on a second equal path
  Entry* find(std::string_view path) const;
  std::deque<Entry>& entries() { return entries_; }  // in the order of construction, equal on every rank
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;
  std::map<std::string, Entry*, std::less<>> by_path_;
};

}  // namespace easydel::nn
