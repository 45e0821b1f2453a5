// The tokens that one forward runs over: their sequences, their positions, the memory that keeps their keys, values and
// states, and what layers compute sequence by sequence. A part of nn::Pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "easydel/ops/recurrence.h"
#include "easydel/ops/rope.h"
#include "easydel/tensor/torch.h"

namespace easydel::nn {

class LoadedAdapter;  // nn/adapter_slots.h
class Memory;         // keys, values and recurrent states of the sequences of a pass: nn/memory.h

// The stream of a model that reads text. Other parts of a model (vision, audio) name streams of their own.
inline constexpr std::string_view text_stream = "text";

// Which keys of its sequence a token sees, in ascending order. fully_masked: it sees none, and `keys` are all keys.
struct KeyChoice {
  Tensor keys;  // int64
  bool fully_masked = false;
};

// Neighbouring tokens of one sequence of a pass, all of its prompt or all generated.
struct TokenSpan {
  int64_t sequence = 0;
  int64_t begin = 0, end = 0;  // rows of the stream
  int64_t position = 0;        // of the first: number of tokens before it in the sequence
  bool prompt = true;
  int64_t prompt_length = 0;  // of the sequence

  int64_t tokens() const { return end - begin; }
  int64_t keys() const { return position + tokens(); }  // tokens that its last one sees, itself included
};

// A list of tokens that attend among themselves. The caller of a model fills in the data members; layers call the
// functions. Copies share what was computed from the tokens (angles, choices of keys).
class Stream {
 public:
  Stream();

  std::vector<int64_t> cu_seqlens;  // where each sequence begins: {0, n0, n0+n1, ...}
  Tensor positions;                 // int64 [tokens], or [3, tokens] for mrope
  Memory* memory = nullptr;         // of these sequences; null: nothing is kept (training, scoring)
  // Of each sequence the length of its whole prompt; the tokens after it were generated. Empty: every token up to the
  // end of this pass is prompt.
  std::vector<int64_t> prompts;
  // Final length of each sequence once its whole prompt has been read. Empty: the length that this pass reaches.
  std::vector<int64_t> lengths;
  Tensor masked;  // bool [tokens]: tokens that are not attended (padding in a probe); undefined: none
  // Of each sequence the number of its last tokens whose results are requested; empty: all.
  std::vector<int64_t> requested;
  // The tokens whose results a head reads, ascending, where whoever called the model took them from its results: int64
  // on the CPU. Undefined: all, or the requested ones.
  Tensor head_tokens;
  bool adapters = true;  // false: weights are read without their adapters, as the base model has them
  // Of each sequence the adapter that it is computed with (models::Adapters); null: the model as it was loaded. Empty:
  // none has one. The pass keeps them, whatever is replaced or removed while it runs.
  std::vector<std::shared_ptr<const LoadedAdapter>> sequence_adapters;

  int64_t tokens() const { return cu_seqlens.empty() ? 0 : cu_seqlens.back(); }
  int64_t sequences() const { return cu_seqlens.empty() ? 0 : int64_t(cu_seqlens.size()) - 1; }
  int64_t requested_tokens() const {
    return requested.empty() ? tokens() : std::accumulate(requested.begin(), requested.end(), int64_t(0));
  }

  // The tokens of the sequences, in order, each sequence's prompt apart from what was generated. The arithmetic of a
  // token may depend on its position, on whether it is prompt and on the prompt's length, and on nothing else: not on
  // how a prompt was cut into passes.
  std::vector<TokenSpan> spans() const;

  // Of x [tokens, ...] the requested tokens' rows.
  Tensor requested_rows(const Tensor& x) const;
  // x with zeros for masked tokens: what a recurrence must not remember.
  Tensor visible(const Tensor& x) const;
  // The angles of the tokens, made once a pass. `spec` must outlive the pass.
  const ops::RopeTable& rope_table(const ops::RopeSpec& spec) const;
  // Of each token the keys that layer `layer` chose for it in this pass: later layers may see the same. Recomputed
  // layers find what the first forward left.
  std::vector<KeyChoice>& choices(int64_t layer) const;

  // Which rows of a product's input belong to which sequence: those of sequence s are [offsets[s], offsets[s + 1]).
  // `rows` is the number of rows; they are the stream's tokens, the requested ones of them, head_tokens, or what a
  // RowScope says.
  // Bug if they are none of these, or if they are in another order than that of sequences.
  std::vector<int64_t> row_offsets(int64_t rows) const;
  // The same for rows in any order, such as those that are sorted by expert: int64 [rows], the sequence of each.
  Tensor row_sequences(int64_t rows) const;
  // int64 [rows]: the token of the stream that each row was computed from. Bug if they are keys or pooled results.
  Tensor row_tokens(int64_t rows) const;

  // A recurrent layer over the sequences: its memory is state number `state` of layer `layer` of the cache, [heads,
  // k_dim, v_dim]. -> fp32 [tokens, heads, v_dim]
  Tensor recurrent(int64_t layer, size_t state, const ops::RecurrenceSpec& spec,
                   const ops::RecurrenceTensors& in) const;
  // ops::causal_convolution with state [width - 1, channels], and ops::running_maximum with state [channels].
  Tensor convolve(int64_t layer, size_t state, const Tensor& x, const Tensor& weight, const Tensor& bias) const;
  ops::RunningMaximum running_maximum(int64_t layer, size_t state, const Tensor& f, const Tensor& i) const;
  // A recurrence that a family computes by itself: step(begin, end, before) of each sequence's rows [begin, end)
  // returns the state after them. `before` is the state that earlier passes left, or `initial`, fp32 [shape...].
  using Step = std::function<Tensor(int64_t begin, int64_t end, const Tensor& before)>;
  void each_sequence(int64_t layer, size_t state, const Tensor& initial, const Step& step) const;

 private:
  friend class RowScope;
  struct Computed;
  struct RowOrder;
  bool are_of_head(int64_t rows) const;
  std::vector<int64_t> offsets_of(const RowOrder* order, int64_t rows) const;
  Tensor sequences_of(const RowOrder* order, int64_t rows) const;
  Tensor tokens_of(const RowOrder* order, int64_t rows) const;

  std::shared_ptr<Computed> computed_;     // shared by copies
  std::shared_ptr<const RowOrder> order_;  // of the innermost RowScope; null: there is none
};

// While it lives, the products of a layer read other rows than the stream's tokens or the requested ones, and the
// functions of Stream about rows say which.
class RowScope {
 public:
  enum class Rows : uint8_t {
    tokens,    // of the spans
    keys,      // of each span the tokens from position 0 to its last, as KeyRows::up_to gives them
    sequences  // one for each sequence: pooled results
  };
  RowScope(Stream& stream, Rows rows, std::span<const TokenSpan> spans = {});
  // Rows that were taken in another order from the `outside` rows that were read before, such as rows sorted by expert.
  // `taken` gives int64 [rows], of each row the one that it was; it is called when a weight asks, and must live as long
  // as this scope.
  RowScope(Stream& stream, int64_t outside, std::function<Tensor()> taken);
  ~RowScope() { stream_.order_ = std::move(before_); }
  RowScope(const RowScope&) = delete;
  RowScope& operator=(const RowScope&) = delete;

 private:
  Stream& stream_;
  std::shared_ptr<const Stream::RowOrder> before_;
};

}  // namespace easydel::nn
