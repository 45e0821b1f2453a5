// Where the keys, values and recurrent states of one pass's sequences are kept between passes. nn::Pass is the only
// caller: layers and families ask the pass, and never see slots, pages or rows of storage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::ops {
struct RopeTable;
}

namespace easydel::nn {

// What one layer keeps of a sequence: keys and values for each token, states whose size does not grow, or both.
struct CacheLayer {
  int64_t kv_heads = 0, k_dim = 0, v_dim = 0;     // kv_heads 0: no keys and values
  std::vector<std::vector<int64_t>> states = {};  // shapes; kept in fp32, zero at the start of a sequence
  // Tokens whose keys a token sees: the last `window` ones with its own, or those of its own chunk. 0: all.
  int64_t window = 0, chunk = 0;
  bool by_role = false;  // the arithmetic of a token depends on whether it is prompt or was generated
  // Codes: the number of elements of a key that may share a scale, because other ones are of another kind. 0: all.
  int64_t key_group = 0;

  bool empty() const { return kv_heads == 0 && states.empty(); }
};

struct CacheShape {
  std::vector<CacheLayer> layers;
  // Of keys and values. Codes are kChar (int8), kFloat8_e4m3fn, and kByte (int8 keys, and values in int4, two in each
  // byte): each token and head has fp32 scales, and an element is code x scale. States are always fp32.
  at::ScalarType type = at::kFloat;
  at::Device device = at::kCPU;
  int64_t group_size = 0;  // of codes that share a scale; 0: those of a token and head, as far as their layer lets them

  bool is_coded() const { return type == at::kChar || type == at::kByte || type == at::kFloat8_e4m3fn; }
  at::ScalarType key_type() const { return type == at::kByte ? at::kChar : type; }
  // Scales of a key, and of a value, of one head.
  int64_t key_scales(const CacheLayer& layer) const {
    const int64_t size = group_size > 0 ? group_size : layer.key_group;
    return size > 0 ? layer.k_dim / size : layer.k_dim > 0 ? 1 : 0;
  }
  int64_t value_scales(const CacheLayer& layer) const {
    return group_size > 0 ? layer.v_dim / group_size : layer.v_dim > 0 ? 1 : 0;
  }
  // Elements of `type` that the values of a head take; with kByte, v_dim is even.
  int64_t value_elements(int64_t v_dim) const { return type == at::kByte ? v_dim / 2 : v_dim; }
};

// The keys and values of one layer, as attention reads them.
struct KeyPages {
  // [pages, kv_heads, page_tokens, dim], of int4 values dim / 2; values undefined: the layer keeps none.
  Tensor keys, values;
  // Of each sequence: position t is token t % page_tokens of page tables[sequence][t / page_tokens].
  std::vector<std::span<const int32_t>> tables = {};
  Tensor key_scales = {}, value_scales = {};  // of codes: fp32 [pages, kv_heads, page_tokens, groups]
};

// The memory of the sequences of one pass, in the pass's order. It refers to the pool that owns pages and states, which
// must outlive it and must not be changed before finish().
class Memory {
 public:
  virtual ~Memory() = default;

  virtual int64_t sequences() const = 0;
  // Number of tokens of a sequence that earlier passes wrote, and that this pass adds.
  virtual int64_t length(int64_t sequence) const = 0;
  virtual int64_t added(int64_t sequence) const = 0;

  // Stores keys and values [added tokens of all sequences, heads, dim] as heads [first_head, first_head + heads) of
  // layer `layer`. values may be undefined where the layer keeps none. `rope` rotates the keys on the way; null: they
  // are stored as they are.
  virtual void write(int64_t layer, int64_t first_head, const Tensor& keys, const Tensor& values,
                     const ops::RopeTable* rope) = 0;
  // Where the keys and values of all tokens are, those that this pass wrote included.
  virtual KeyPages ranges(int64_t layer) const = 0;

  // State number `index` of a layer, fp32 [sequences, shape...], for the pass to change in place and to give back.
  virtual Tensor take_states(int64_t layer, size_t index) = 0;
  virtual void put_states(int64_t layer, size_t index, const Tensor& states) = 0;

  // After the last layer: the added tokens count. Called once.
  virtual void finish() = 0;
};

}  // namespace easydel::nn
