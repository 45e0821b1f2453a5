#include "easydel/nn/pass.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/nn/memory.h"
#include "easydel/ops/convolution.h"
#include "easydel/ops/dropout.h"

namespace easydel::nn {

struct Pass::Memo {
  std::map<std::pair<std::string, const ops::RopeSpec*>, ops::RopeTable> rope;
  std::map<int64_t, std::vector<KeyChoice>> choices;
};

namespace {

// For each sequence the positions begin[i], begin[i] + 1, ...
Tensor positions_from(const std::vector<int64_t>& begin, const std::vector<int64_t>& cu_seqlens) {
  std::vector<Tensor> parts;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
    parts.push_back(
        at::arange(begin[s], begin[s] + cu_seqlens[s + 1] - cu_seqlens[s], at::TensorOptions().dtype(at::kLong)));
  return parts.empty() ? at::arange(0, at::TensorOptions().dtype(at::kLong)) : at::cat(parts);
}

}  // namespace

Pass::Pass() : memo_(std::make_shared<Memo>()) {}

Pass Pass::over(std::vector<int64_t> cu_seqlens) {
  check(!cu_seqlens.empty() && cu_seqlens.front() == 0, "pass: cu_seqlens must begin with 0");
  Pass pass;
  Stream& text = pass.stream();
  text.positions = positions_from(std::vector<int64_t>(cu_seqlens.size(), 0), cu_seqlens);
  text.cu_seqlens = std::move(cu_seqlens);
  return pass;
}

Pass Pass::next(Memory& memory, std::vector<int64_t> prompts) {
  check(prompts.empty() || int64_t(prompts.size()) == memory.sequences(), "pass: ", prompts.size(), " prompts of ",
        memory.sequences(), " sequences");
  Pass pass;
  Stream& text = pass.stream();
  std::vector<int64_t> begin;
  text.cu_seqlens = {0};
  for (int64_t s = 0; s < memory.sequences(); ++s) {
    begin.push_back(memory.length(s));
    text.cu_seqlens.push_back(text.cu_seqlens.back() + memory.added(s));
  }
  text.positions = positions_from(begin, text.cu_seqlens);
  text.memory = &memory;
  text.prompts = std::move(prompts);
  return pass;
}

Stream& Pass::stream(std::string_view name) {
  const auto found = streams_.find(name);
  return found != streams_.end() ? found->second : streams_[std::string(name)];
}

const Stream& Pass::stream(std::string_view name) const {
  const auto found = streams_.find(name);
  check(found != streams_.end(), "pass: no stream '", name, "'");
  return found->second;
}

std::vector<TokenSpan> Pass::spans(std::string_view stream_name) const {
  const Stream& on = stream(stream_name);
  std::vector<TokenSpan> out;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    const int64_t past = on.memory ? on.memory->length(s) : 0;
    const int64_t prompt = on.prompts.empty() ? past + end - begin : on.prompts[size_t(s)];
    const int64_t generated = std::clamp(begin + prompt - past, begin, end);  // the first generated row
    if (begin < generated) out.push_back({s, begin, generated, past, true, prompt});
    if (generated < end) out.push_back({s, generated, end, past + generated - begin, false, prompt});
  }
  return out;
}

Tensor Pass::attend(int64_t layer, const ops::AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& v,
                    std::string_view stream_name, const ops::RopeTable* rope) {
  const Stream& on = stream(stream_name);
  ops::AttentionSpec wanted = spec;
  if (!training) wanted.dropout = 0.0;
  ops::AttentionCall call;
  call.first_token = first_token;
  if (wanted.dropout > 0) call.dropout_key = dropout_key("attn_weights");
  const bool some = q.size(0) != on.tokens();
  check(!some || (q.size(0) == on.wanted_tokens() && !training), "pass: queries of ", q.size(0), " tokens of ",
        on.tokens());
  KeyPages pages;
  if (on.memory) {
    on.memory->write(layer, 0, k, v, rope);
    pages = on.memory->ranges(layer);
  } else {
    pages.keys = rope ? ops::rope(k, *rope) : k, pages.values = v;
    call.hidden = on.hidden;
  }
  std::vector<ops::AttentionRange> ranges;
  int64_t row = 0;
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const int64_t begin = on.cu_seqlens[size_t(s)], end = on.cu_seqlens[size_t(s) + 1];
    const int64_t first_row = row;
    row += some ? on.wanted[size_t(s)] : end - begin;
    if (on.memory)
      ranges.push_back({first_row, row, 0, on.memory->length(s) + end - begin, pages.tables[size_t(s)]});
    else
      ranges.push_back({first_row, row, begin, end, {}});
  }
  call.sequences = ranges;
  return attention_of(wanted, call, q, pages.keys, pages.values);
}

Tensor Pass::attention_of(const ops::AttentionSpec& spec, ops::AttentionCall call, const Tensor& q, const Tensor& k,
                          const Tensor& v) {
  constexpr std::string_view result = "attn_dense", normalizers = "attn_dense.normalizers";
  ops::AttentionMemory memory{given(result), given(normalizers)};
  const bool keep = saving_ && checkpointing.keeps(result);
  if (keep || memory.out.defined()) call.memory = &memory;
  const Tensor out = ops::attention(spec, call, q, k, v, attention);
  if (keep && memory.out.defined()) {
    (*saving_)[std::string(result)].push_back(memory.out);
    (*saving_)[std::string(normalizers)].push_back(memory.normalizers);
  }
  asked_.clear();
  return out;
}

namespace {

// The states of a pass's sequences, given back when the call is done. Undefined: nothing is kept.
class BorrowedStates {
 public:
  BorrowedStates(const Stream& on, int64_t layer, size_t index) : memory_(on.memory), layer_(layer), index_(index) {
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

Tensor Pass::recurrent(int64_t layer, size_t state, const ops::RecurrenceSpec& spec, const ops::RecurrenceTensors& in,
                       std::string_view stream_name) {
  const Stream& on = stream(stream_name);
  const BorrowedStates states(on, layer, state);
  return ops::recurrence(spec, in, on.cu_seqlens, *states);
}

Tensor Pass::convolve(int64_t layer, size_t state, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      std::string_view stream_name) {
  const Stream& on = stream(stream_name);
  const BorrowedStates states(on, layer, state);
  return ops::causal_convolution(x, weight, bias, on.cu_seqlens, *states);
}

ops::RunningMaximum Pass::running_maximum(int64_t layer, size_t state, const Tensor& f, const Tensor& i,
                                          std::string_view stream_name) {
  const Stream& on = stream(stream_name);
  const BorrowedStates states(on, layer, state);
  // Before its first token a sequence has no maximum; kept states begin with zeros.
  for (int64_t s = 0; on.memory && s < on.sequences(); ++s)
    if (on.memory->length(s) == 0) (*states)[s].fill_(-std::numeric_limits<float>::infinity());
  return ops::running_maximum(f, i, on.cu_seqlens, *states);
}

void Pass::each_sequence(int64_t layer, size_t state, const Tensor& initial, const Step& step,
                         std::string_view stream_name) {
  const Stream& on = stream(stream_name);
  const BorrowedStates states(on, layer, state);
  for (int64_t s = 0; s < on.sequences(); ++s) {
    const Tensor before = on.memory ? (*states)[s] : initial;
    const Tensor after = step(on.cu_seqlens[size_t(s)], on.cu_seqlens[size_t(s) + 1], before);
    if (on.memory) before.copy_(after);
  }
}

Tensor Pass::wanted(const Tensor& x, std::string_view stream_name) const {
  const Stream& on = stream(stream_name);
  if (on.wanted_tokens() == on.tokens()) return x;
  std::vector<int64_t> rows;
  for (size_t s = 0; s < on.wanted.size(); ++s)
    for (int64_t end = on.cu_seqlens[s + 1], row = end - on.wanted[s]; row < end; ++row) rows.push_back(row);
  return x.index_select(0, at::tensor(rows, at::kLong).to(x.device()));
}

Tensor Pass::visible(const Tensor& x, std::string_view stream_name) const {
  const Stream& on = stream(stream_name);
  if (!on.hidden.defined()) return x;
  return x.masked_fill(on.hidden.to(x.device()).view({-1, 1}), 0.0);
}

const ops::RopeTable& Pass::rope_table(const ops::RopeSpec& spec, std::string_view stream_name) {
  const auto key = std::pair(std::string(stream_name), &spec);
  const auto found = memo_->rope.find(key);
  if (found != memo_->rope.end()) return found->second;
  const Stream& on = stream(stream_name);
  return memo_->rope.emplace(key, ops::rope_table(spec, on.positions, on.cu_seqlens, on.lengths)).first->second;
}

Tensor Pass::dropout(std::string_view name, const Tensor& x, double rate) {
  if (!training || rate <= 0.0) return x;
  return ops::dropout(x, rate, dropout_key(name), first_token);
}

std::vector<KeyChoice>& Pass::choices(int64_t layer) { return memo_->choices[layer]; }

bool Pass::leaves_out(std::string_view path, double rate) const {
  if (!training || rate <= 0.0) return false;
  return ops::uniform(1, 1, ops::dropout_key(seed, step, str(path, ".layer_dropout")), 0).item<float>() < rate;
}

uint64_t Pass::dropout_key(std::string_view name) const {
  return ops::dropout_key(seed, step, prefix_ + "." + std::string(name));
}

Tensor Pass::uniform(std::string_view name, int64_t tokens, int64_t channels) const {
  return ops::uniform(tokens, channels, dropout_key(name), first_token);
}

Tensor Pass::jitter(std::string_view name, const Tensor& x, double amount) {
  if (!training || amount <= 0.0) return x;
  return ops::jitter(x, amount, dropout_key(name), first_token);
}

bool Pass::has_backward() const { return saving_ || at::GradMode::is_enabled(); }

Tensor Pass::name(std::string_view name, Tensor x) {
  if (capture) {
    const std::string path = prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
    capture(path, x);
  }
  if (saving_ && asked_ == name && checkpointing.keeps(name)) (*saving_)[std::string(name)].push_back(x.detach());
  asked_.clear();
  return x;
}

Tensor Pass::given(std::string_view name) {
  if (saving_) asked_ = name;
  if (!giving_) return {};
  const auto found = giving_->find(name);
  if (found == giving_->end()) return {};
  return found->second.at(taken_[std::string(name)]++);
}

void Pass::finish() {
  for (auto& [name, on] : streams_)
    if (on.memory) on.memory->finish();
}

}  // namespace easydel::nn
