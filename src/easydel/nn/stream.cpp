#include "easydel/nn/stream.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/nn/memory.h"
#include "easydel/ops/convolution.h"

namespace easydel::nn {

struct Stream::Computed {
  std::map<const ops::RopeSpec*, ops::RopeTable> rope;
  std::map<int64_t, std::vector<KeyChoice>> choices;
};

// Which rows a RowScope's products read: rows in the order of sequences, or rows taken from others.
struct Stream::RowOrder {
  std::vector<int64_t> offsets;          // of each sequence's rows; empty: rows taken from others
  std::vector<TokenSpan> tokens;         // the rows are these tokens; empty: they are not tokens of the stream
  std::shared_ptr<const RowOrder> from;  // the order of the others, of which there are from_rows
  int64_t from_rows = 0;
  std::function<Tensor()> taken;
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

// Of `rows` rows that were taken from others what is known of those: `of_others`, by row.
Tensor of_taken(const Tensor& of_others, const std::function<Tensor()>& taken, int64_t rows) {
  const Tensor from = taken().to(at::kCPU);
  check(from.numel() == rows, "stream: ", rows, " rows where ", from.numel(), " were taken");
  return of_others.index_select(0, from);
}

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

std::vector<int64_t> Stream::row_offsets(int64_t rows) const { return offsets_of(order_.get(), rows); }
Tensor Stream::row_sequences(int64_t rows) const { return sequences_of(order_.get(), rows); }
Tensor Stream::row_tokens(int64_t rows) const { return tokens_of(order_.get(), rows); }

bool Stream::are_of_head(int64_t rows) const {
  return head_tokens.defined() && rows == head_tokens.numel() && rows != tokens();
}

std::vector<int64_t> Stream::offsets_of(const RowOrder* order, int64_t rows) const {
  if (order) {
    check(!order->taken, "stream: ", rows, " rows are not in the order of sequences");
    check(order->offsets.back() == rows, "stream: ", rows, " rows where ", order->offsets.back(), " are read");
    return order->offsets;
  }
  if (rows == tokens()) return cu_seqlens;
  if (are_of_head(rows)) {
    const int64_t* const of_head = head_tokens.const_data_ptr<int64_t>();
    std::vector<int64_t> offsets;
    for (const int64_t begin : cu_seqlens)
      offsets.push_back(std::lower_bound(of_head, of_head + rows, begin) - of_head);
    return offsets;
  }
  check(rows == requested_tokens(), "stream: ", rows, " rows are neither its ", tokens(), " tokens nor the ",
        requested_tokens(), " requested ones");
  std::vector<int64_t> offsets = {0};
  for (const int64_t count : requested) offsets.push_back(offsets.back() + count);
  return offsets;
}

Tensor Stream::sequences_of(const RowOrder* order, int64_t rows) const {
  if (order && order->taken) return of_taken(sequences_of(order->from.get(), order->from_rows), order->taken, rows);
  const std::vector<int64_t> offsets = offsets_of(order, rows);
  return at::repeat_interleave(at::tensor(offsets, at::kLong).diff(), std::optional<int64_t>(rows));
}

Tensor Stream::tokens_of(const RowOrder* order, int64_t rows) const {
  if (order && order->taken) return of_taken(tokens_of(order->from.get(), order->from_rows), order->taken, rows);
  const std::vector<int64_t> offsets = offsets_of(order, rows);
  const Tensor all = at::arange(tokens(), at::kLong);
  if (!order) return rows == tokens() ? all : are_of_head(rows) ? head_tokens : requested_rows(all);
  std::vector<Tensor> parts = {all.slice(0, 0, 0)};
  for (const TokenSpan& span : order->tokens) parts.push_back(all.slice(0, span.begin, span.end));
  const Tensor out = at::cat(parts);
  check(out.numel() == rows, "stream: ", rows, " rows are not tokens of this pass");
  return out;
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
    : stream_(stream), before_(stream.order_) {
  auto order = std::make_shared<Stream::RowOrder>();
  std::vector<int64_t>& offsets = order->offsets;
  offsets.assign(size_t(stream.sequences()) + 1, rows == Rows::sequences ? 1 : 0);
  offsets.front() = 0;
  for (const TokenSpan& span : spans)
    offsets[size_t(span.sequence) + 1] += rows == Rows::keys ? span.keys() : span.tokens();
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  if (rows == Rows::tokens) order->tokens.assign(spans.begin(), spans.end());
  stream_.order_ = std::move(order);
}

RowScope::RowScope(Stream& stream, int64_t outside, std::function<Tensor()> taken)
    : stream_(stream), before_(stream.order_) {
  auto order = std::make_shared<Stream::RowOrder>();
  order->from = before_, order->from_rows = outside, order->taken = std::move(taken);
  stream_.order_ = std::move(order);
}

}  // namespace easydel::nn
