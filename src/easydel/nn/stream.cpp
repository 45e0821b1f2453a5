#include "easydel/nn/stream.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/nn/memory.h"
#include "easydel/ops/convolution.h"

namespace easydel::nn {

struct Stream::Computed {
  std::map<const ops::RopeSpec*, ops::RopeTable> rope;
  std::map<int64_t, std::vector<KeyChoice>> choices;
};

namespace {

// The states of a pass's sequences, given back when the call is done. Undefined: nothing is kept.
class BorrowedStates {
 public:
  BorrowedStates(Memory* memory, int64_t layer, size_t index) : memory_(memory), layer_(layer), index_(index) {
    if (memory_) states_ = memory_->take_states(layer, index);
  }
  ~BorrowedStates() {
    if (memory_) memory_->put_states(layer_, index_, states_);
  }
  BorrowedStates(const BorrowedStates&) = delete;
  BorrowedStates& operator=(const BorrowedStates&) = delete;

  const Tensor& operator*() const { return states_; }

 private:
  Memory* memory_;
  int64_t layer_;
  size_t index_;
  Tensor states_;
};

}  // namespace

Stream::Stream() : computed_(std::make_shared<Computed>()) {}

std::vector<TokenSpan> Stream::spans() const {
  std::vector<TokenSpan> out;
  for (int64_t s = 0; s < sequences(); ++s) {
    const int64_t begin = cu_seqlens[size_t(s)], end = cu_seqlens[size_t(s) + 1];
    const int64_t past = memory ? memory->length(s) : 0;
    const int64_t prompt = prompts.empty() ? past + end - begin : prompts[size_t(s)];
    const int64_t generated = std::clamp(begin + prompt - past, begin, end);  // the first generated row
    if (begin < generated) out.push_back({s, begin, generated, past, true, prompt});
    if (generated < end) out.push_back({s, generated, end, past + generated - begin, false, prompt});
  }
  return out;
}

Tensor Stream::requested_rows(const Tensor& x) const {
  if (requested_tokens() == tokens()) return x;
  std::vector<int64_t> rows;
  for (size_t s = 0; s < requested.size(); ++s)
    for (int64_t end = cu_seqlens[s + 1], row = end - requested[s]; row < end; ++row) rows.push_back(row);
  return x.index_select(0, at::tensor(rows, at::kLong).to(x.device()));
}

Tensor Stream::visible(const Tensor& x) const {
  if (!masked.defined()) return x;
  return x.masked_fill(masked.to(x.device()).view({-1, 1}), 0.0);
}

const ops::RopeTable& Stream::rope_table(const ops::RopeSpec& spec) const {
  auto& tables = computed_->rope;
  const auto found = tables.find(&spec);
  if (found != tables.end()) return found->second;
  return tables.emplace(&spec, ops::rope_table(spec, positions, cu_seqlens, lengths)).first->second;
}

std::vector<KeyChoice>& Stream::choices(int64_t layer) const { return computed_->choices[layer]; }

std::vector<int64_t> Stream::row_offsets(int64_t rows) const {
  if (rows_) {
    check(!rows_->empty(), "stream: ", rows, " rows were regrouped, and are not in the order of sequences");
    check(rows_->back() == rows, "stream: ", rows, " rows where ", rows_->back(), " are read");
    return *rows_;
  }
  if (rows == tokens()) return cu_seqlens;
  check(rows == requested_tokens(), "stream: ", rows, " rows are neither its ", tokens(), " tokens nor the ",
        requested_tokens(), " requested ones");
  std::vector<int64_t> offsets = {0};
  for (const int64_t count : requested) offsets.push_back(offsets.back() + count);
  return offsets;
}

Tensor Stream::recurrent(int64_t layer, size_t state, const ops::RecurrenceSpec& spec,
                         const ops::RecurrenceTensors& in) const {
  const BorrowedStates states(memory, layer, state);
  return ops::recurrence(spec, in, cu_seqlens, *states);
}

Tensor Stream::convolve(int64_t layer, size_t state, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  const BorrowedStates states(memory, layer, state);
  return ops::causal_convolution(x, weight, bias, cu_seqlens, *states);
}

ops::RunningMaximum Stream::running_maximum(int64_t layer, size_t state, const Tensor& f, const Tensor& i) const {
  const BorrowedStates states(memory, layer, state);
  // Before its first token a sequence has no maximum; kept states begin with zeros.
  for (int64_t s = 0; memory && s < sequences(); ++s)
    if (memory->length(s) == 0) (*states)[s].fill_(-std::numeric_limits<float>::infinity());
  return ops::running_maximum(f, i, cu_seqlens, *states);
}

void Stream::each_sequence(int64_t layer, size_t state, const Tensor& initial, const Step& step) const {
  const BorrowedStates states(memory, layer, state);
  for (int64_t s = 0; s < sequences(); ++s) {
    const Tensor before = memory ? (*states)[s] : initial;
    const Tensor after = step(cu_seqlens[size_t(s)], cu_seqlens[size_t(s) + 1], before);
    if (memory) before.copy_(after);
  }
}

RowScope::RowScope(Stream& stream, Rows rows, std::span<const TokenSpan> spans)
    : stream_(stream), before_(std::move(stream.rows_)) {
  std::vector<int64_t>& offsets = stream_.rows_.emplace();
  if (rows == Rows::regrouped) return;
  offsets.assign(size_t(stream.sequences()) + 1, rows == Rows::sequences ? 1 : 0);
  offsets.front() = 0;
  for (const TokenSpan& span : spans)
    offsets[size_t(span.sequence) + 1] += rows == Rows::keys ? span.keys() : span.tokens();
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
}

}  // namespace easydel::nn
