#include "easydel/nn/adapter_slots.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/ops/activation.h"

namespace easydel::nn {
namespace {

// Neighbouring rows with the same adapter.
struct Run {
  const LoadedAdapter::Part* part;  // null: none changes this weight
  int64_t begin, end;
  int64_t rows() const { return end - begin; }
};

bool has_adapters(const Stream& stream) { return stream.adapters && !stream.sequence_adapters.empty(); }

std::vector<Run> runs_of(const Stream& stream, size_t slot, int64_t rows) {
  check(int64_t(stream.sequence_adapters.size()) == stream.sequences(), "adapters of ", stream.sequence_adapters.size(),
        " sequences; the pass has ", stream.sequences());
  const std::vector<int64_t> offsets = stream.row_offsets(rows);
  std::vector<Run> out;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    if (offsets[s] == offsets[s + 1]) continue;
    const LoadedAdapter* const adapter = stream.sequence_adapters[s].get();
    const LoadedAdapter::Part* part = adapter ? &adapter->at(slot) : nullptr;
    if (part && !part->weight) part = nullptr;
    if (!out.empty() && out.back().part == part)
      out.back().end = offsets[s + 1];
    else
      out.push_back({part, offsets[s], offsets[s + 1]});
  }
  return out;
}

bool is_plain(const std::vector<Run>& runs) {
  return std::ranges::none_of(runs, [](const Run& run) { return run.part != nullptr; });
}

// The result of each run, in order; `of` makes that of one run from the base's rows.
template <class Of>
Tensor joined(const std::vector<Run>& runs, const Tensor& y, const Of& of) {
  if (runs.size() == 1) return of(runs.front(), y);
  std::vector<Tensor> parts;
  for (const Run& run : runs) {
    const Tensor rows = y.narrow(0, run.begin, run.rows());
    parts.push_back(run.part ? of(run, rows) : rows);
  }
  return at::cat(parts);
}

// x on the rows of a run, and zeros on all others.
Tensor alone_in(const Tensor& x, const Run& run, int64_t rows) {
  if (run.rows() == rows) return x;
  const Tensor out = x.new_zeros({rows, x.size(1)});
  out.narrow(0, run.begin, run.rows()).copy_(x);
  return out;
}

class SlotHeads final : public WeightStack {
 public:
  SlotHeads(size_t slot, size_t index, int64_t heads, std::shared_ptr<WeightStack> base)
      : slot_(slot), index_(index), heads_(heads), base_(std::move(base)) {}

  // Each head has all rows: of a run, the same rows of each head.
  Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass& pass) override {
    if (!has_adapters(pass.stream())) return base_->product(x, begin, bias, pass);
    const int64_t rows = begin[1] - begin[0];
    const std::vector<Run> runs = runs_of(pass.stream(), slot_, rows);
    Tensor y = base_->product(x, begin, bias, pass);
    if (is_plain(runs)) return y;
    if (runs.size() == 1) return adapter(runs.front()).product(y, x, begin, pass);
    const auto by_head = [&](const Tensor& all) { return all.view({heads_, rows, -1}); };
    std::vector<Tensor> parts;
    for (const Run& run : runs) {
      const auto of_run = [&](const Tensor& all) { return by_head(all).narrow(1, run.begin, run.rows()); };
      const Tensor y_run = of_run(y);
      if (!run.part) {
        parts.push_back(y_run);
        continue;
      }
      std::vector<int64_t> own;
      for (int64_t head = 0; head <= heads_; ++head) own.push_back(head * run.rows());
      const auto flat = [](const Tensor& part) { return part.contiguous().flatten(0, 1); };
      parts.push_back(adapter(run).product(flat(y_run), flat(of_run(x)), own, pass).view(y_run.sizes()));
    }
    return at::cat(parts, 1).flatten(0, 1);
  }

 private:
  HeadAdapter& adapter(const Run& run) const { return *run.part->heads[index_]; }

  size_t slot_, index_;
  int64_t heads_;
  std::shared_ptr<WeightStack> base_;
};

class SlotWeight final : public Weight {
 public:
  SlotWeight(AdapterSlots::Slot& slot, size_t index) : slot_(slot), index_(index), base_(slot.base) {}

  Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) override {
    if (!has_adapters(pass.stream())) return base_->product(x, bias, name, pass);
    const std::vector<Run> runs = runs_of(pass.stream(), index_, x.size(0));
    if (Weight* const one = replacement(runs)) return one->product(x, bias, name, pass);
    Tensor y = base_->product(x, bias, name, pass);
    if (is_plain(runs)) return y;
    if (const auto added = added_by(runs, x, pass)) {
      ops::add_low_ranks({&y, 1}, x, {&*added, 1});
      return y;
    }
    return joined(runs, y, [&](const Run& run, const Tensor& rows) {
      return run.part->weight->product(rows, x.narrow(0, run.begin, run.rows()), bias, pass);
    });
  }
  Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                       std::string_view name, Pass& pass) override {
    if (!has_adapters(pass.stream()) || is_plain(runs_of(pass.stream(), index_, gate.size(0))))
      return base_->gated_product(gate, up, kind, bias, name, pass);
    return product(ops::gated(gate, up, kind), bias, name, pass);
  }
  std::optional<AdaptedMatrix> adapted_matrix(const Tensor& x, Pass& pass) override {
    std::optional<AdaptedMatrix> out = base_->adapted_matrix(x, pass);
    if (!out || !has_adapters(pass.stream())) return out;
    auto added = added_by(runs_of(pass.stream(), index_, x.size(0)), x, pass);
    if (!added || (!added->empty() && !out->added.empty())) return std::nullopt;
    out->added.insert(out->added.end(), added->begin(), added->end());
    return out;
  }
  // A product with zeros adds +0 to the rows of other sequences, which heads subtract: that changes no bit.
  std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) override {
    if (!has_adapters(pass.stream())) return base_->factors(x, pass);
    const std::vector<Run> runs = runs_of(pass.stream(), index_, x.size(0));
    if (Weight* const one = replacement(runs)) return one->factors(x, pass);
    std::vector<ops::Factors> out = base_->factors(x, pass);
    for (const Run& run : runs) {
      if (!run.part) continue;
      check(!run.part->weight->replacement(), slot_.module, ": sequences with and without a weight of their own");
      for (ops::Factors& one : run.part->weight->factors(x.narrow(0, run.begin, run.rows()), pass)) {
        one.x = alone_in(one.x, run, x.size(0));
        out.push_back(std::move(one));
      }
    }
    return out;
  }
  Tensor lookup(const Tensor& indices, int64_t padding, Pass& pass) override {
    const Tensor y = base_->lookup(indices, padding, pass);
    if (!has_adapters(pass.stream())) return y;
    const std::vector<Run> runs = runs_of(pass.stream(), index_, indices.size(0));
    return is_plain(runs) ? y : joined(runs, y, [&](const Run& run, const Tensor& rows) {
      return run.part->weight->lookup(rows, indices.narrow(0, run.begin, run.rows()), padding, pass);
    });
  }
  std::shared_ptr<WeightStack> by_head(const HeadRows& rows) override {
    slot_.heads.push_back(rows);
    return std::make_shared<SlotHeads>(index_, slot_.heads.size() - 1, rows.heads, base_->by_head(rows));
  }
  Tensor values() const override { return base_->values(); }
  Weight* base() override { return base_.get(); }

 private:
  // The weight that all rows read instead of the base; null: there is none.
  static Weight* replacement(const std::vector<Run>& runs) {
    return runs.size() == 1 && runs.front().part ? runs.front().part->weight->replacement() : nullptr;
  }

  // What each adapter adds to its rows, if all are products of low rank.
  static std::optional<std::vector<ops::AddedRows>> added_by(const std::vector<Run>& runs, const Tensor& x,
                                                             Pass& pass) {
    std::vector<ops::AddedRows> out;
    std::vector<const LoadedAdapter::Part*> parts;  // of `out`
    for (const Run& run : runs) {
      if (!run.part) continue;
      const auto found = std::ranges::find(parts, run.part);
      const auto index = size_t(found - parts.begin());
      if (found == parts.end()) {
        const WeightAdapter::OfLowRank part = run.part->weight->of_low_rank(x, pass);
        if (!part.forms) return std::nullopt;
        parts.push_back(run.part), out.push_back({{}, part.forms, part.scale});
      }
      for (int64_t row = run.begin; row < run.end; ++row) out[index].rows.push_back(row);
    }
    return out;
  }

  AdapterSlots::Slot& slot_;
  size_t index_;
  std::shared_ptr<Weight> base_;
};

}  // namespace

std::shared_ptr<Weight> AdapterSlots::add(Slot slot) {
  slots_.push_back(std::move(slot));
  return std::make_shared<SlotWeight>(slots_.back(), slots_.size() - 1);
}

std::shared_ptr<Weight> AdapterSlots::linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                             bool shared) {
  return add({shared ? scope.path() : layer_name(entry), &entry, shared, std::move(weight)});
}

std::shared_ptr<Weight> AdapterSlots::embedding(const Scope&, Entry& entry, std::shared_ptr<Weight> weight) {
  return add({layer_name(entry), &entry, false, std::move(weight)});
}

std::shared_ptr<Weight> AdapterSlots::router(const Scope&, Entry& entry, std::shared_ptr<Weight> weight) {
  return add({layer_name(entry), &entry, false, std::move(weight)});
}

}  // namespace easydel::nn
