// Keys and values of running sequences, contiguous in a slot for each sequence. For generation and probes; the engine
// has pages of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::nn {

struct CacheShape {
  int64_t layers = 0, kv_heads = 0, k_dim = 0, v_dim = 0;
  at::ScalarType type = at::kFloat;
  at::Device device = at::kCPU;
};

class Cache {
 public:
  // Room for `length` tokens in each of `slots` slots. Grows by itself when `growing`, else writing past it is a Bug.
  Cache(CacheShape shape, int64_t slots, int64_t length, bool growing = true);

  int64_t slots() const { return int64_t(lengths_.size()); }
  int64_t room() const { return room_; }                              // tokens a slot holds now
  int64_t length(int64_t slot) const { return lengths_[size_t(slot)]; }  // tokens that are there

  // k, v [tokens, kv_heads, dim] become rows [length(slot), length(slot) + tokens) of a layer. Lengths do not move.
  void write(int64_t layer, int64_t slot, const Tensor& k, const Tensor& v);
  void advance(int64_t slot, int64_t tokens);   // after the last layer: the written rows count
  void truncate(int64_t slot, int64_t length);  // forgets what is behind; 0 frees the slot
  void reserve(int64_t length);                 // makes room for so many tokens a slot

  // [slots * room, kv_heads, dim]; slot s is the rows from s * room.
  Tensor keys(int64_t layer) const;
  Tensor values(int64_t layer) const;
  int64_t bytes() const;

 private:
  CacheShape shape_;
  int64_t room_ = 0;
  bool growing_;
  std::vector<int64_t> lengths_;
  std::vector<Tensor> keys_, values_;  // per layer [slots, room, kv_heads, dim]
};

}  // namespace easydel::nn
