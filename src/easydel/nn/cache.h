// Keys, values and recurrent states of running sequences, contiguous in a slot for each sequence. For generation and
// probes; the engine has pages of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::nn {

// What one layer keeps of a sequence: keys and values for each token, states whose size does not grow, or both.
struct CacheLayer {
  int64_t kv_heads = 0, k_dim = 0, v_dim = 0;  // kv_heads 0: no keys and values
  std::vector<std::vector<int64_t>> states;    // shapes; kept in fp32, zero at the start of a sequence

  bool empty() const { return kv_heads == 0 && states.empty(); }
};

struct CacheShape {
  std::vector<CacheLayer> layers;
  at::ScalarType type = at::kFloat;  // of keys and values
  at::Device device = at::kCPU;
};

class Cache {
 public:
  // Room for `length` tokens in each of `slots` slots. Grows by itself when `growing`, else writing past it is a Bug.
  Cache(CacheShape shape, int64_t slots, int64_t length, bool growing = true);

  int64_t slots() const { return int64_t(lengths_.size()); }
  int64_t room() const { return room_; }                                 // tokens a slot holds now
  int64_t length(int64_t slot) const { return lengths_[size_t(slot)]; }  // tokens that are there

  // The next `tokens` rows of a slot, to be written: [tokens, kv_heads, dim]. Lengths do not move.
  struct Rows {
    Tensor k, v;
  };
  Rows next(int64_t layer, int64_t slot, int64_t tokens) const;
  // State number `index` of a layer for all slots: fp32 [slots, shape...], the cache's own storage, to be read and
  // written in place.
  Tensor state(int64_t layer, size_t index) const;
  void advance(int64_t slot, int64_t tokens);  // after the last layer: the written rows count
  // Forgets what is behind; 0 frees the slot. With states only 0 or the present length is possible: they cannot be
  // taken back.
  void truncate(int64_t slot, int64_t length);
  // Slot `to` becomes equal to slot `from`; the first `begin` tokens of both are the same already.
  void copy(int64_t from, int64_t to, int64_t begin = 0);
  void reserve(int64_t length);  // makes room for so many tokens a slot

  // [slots * room, kv_heads, dim]; slot s is the rows from s * room. The rows of one head lie side by side, as decoding
  // reads them.
  Tensor keys(int64_t layer) const;
  Tensor values(int64_t layer) const;
  int64_t bytes() const;

 private:
  struct Store {
    Tensor keys, values;  // [slots, room, kv_heads, dim], a view of [kv_heads, slots, room, dim]; undefined: none
    std::vector<Tensor> states;
  };

  bool growing_, has_states_ = false;
  int64_t room_ = 0;
  std::vector<int64_t> lengths_;
  std::vector<Store> layers_;
};

}  // namespace easydel::nn
