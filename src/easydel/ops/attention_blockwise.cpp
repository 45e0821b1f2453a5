// Attention block by block with a running softmax (arXiv 2205.14135, 2310.01889), in ATen: linear memory on any device
// and in any dtype. The backward computes each block's scores again.
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "easydel/ops/attention_backends.h"
#include "easydel/ops/attention_scores.h"
#include "easydel/ops/dropout.h"
#include "easydel/ops/gradient.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t query_block = 128, key_block = 512;
constexpr double nothing = -std::numeric_limits<double>::infinity();

// The arguments of a call except q, k, v and sinks; saved for the backward.
struct Plan {
  AttentionSpec spec;
  std::vector<AttentionRange> sequences;
  uint64_t dropout_key = 0;
  int64_t first_token = 0;
};

struct PlanHolder : torch::CustomClassHolder {
  explicit PlanHolder(Plan p) : plan(std::move(p)) {}
  Plan plan;
};

// Rows of q and a block of keys, by their positions in the sequence.
struct Block {
  int64_t row, rows;           // of q
  int64_t first_query;         // position of the first of them
  int64_t key_row, key, keys;  // the block's first row of k, its position, its number of keys
};

struct KeyRange {
  int64_t begin, end;
};

// The keys that at least one query at positions [first, last] sees.
KeyRange seen(const AttentionSpec& spec, int64_t first, int64_t last, int64_t keys) {
  KeyRange range{0, keys};
  if (spec.kind == AttentionKind::causal) range.end = std::min(range.end, last + 1);
  if (spec.window > 0) {
    range.begin = std::max<int64_t>(0, first + 1 - spec.window);
    range.end = std::min(range.end, last + spec.window);
  }
  if (spec.chunk > 0) {
    range.begin = std::max(range.begin, first / spec.chunk * spec.chunk);
    range.end = std::min(range.end, (last / spec.chunk + 1) * spec.chunk);
  }
  return range;
}

// Calls rows(block) for each block of queries, then each(block) for each block of keys that it sees, then done(block).
// Blocks of keys start at position 0, so that every call cuts a query's keys in the same way.
template <class Rows, class Each, class Done>
void walk(const Plan& plan, Rows&& rows, Each&& each, Done&& done) {
  for (const AttentionRange& range : plan.sequences) {
    const int64_t keys = range.key_end - range.key_begin, past = keys - (range.end - range.begin);
    for (int64_t row = range.begin; row < range.end; row += query_block) {
      Block block{row, std::min(query_block, range.end - row), past + row - range.begin, 0, 0, 0};
      rows(block);
      const KeyRange visible = seen(plan.spec, block.first_query, block.first_query + block.rows - 1, keys);
      for (block.key = visible.begin / key_block * key_block; block.key < visible.end; block.key += key_block) {
        block.key_row = range.key_begin + block.key;
        block.keys = std::min(key_block, visible.end - block.key);
        each(block);
      }
      done(block);
    }
  }
}

Tensor queries_of(const Tensor& t, const Block& block, int64_t heads) {
  return heads_first(t.narrow(0, block.row, block.rows), heads);
}
Tensor keys_of(const Tensor& t, const Block& block, int64_t heads) {
  return heads_first(t.narrow(0, block.key_row, block.keys), heads);
}

// fp32 [heads, rows, keys]; masked scores are -infinity.
Tensor block_scores(const Plan& plan, const Block& block, const Tensor& q, const Tensor& k) {
  const auto options = q.options().dtype(at::kLong);
  const Tensor query = at::arange(block.first_query, block.first_query + block.rows, options);
  const Tensor key = at::arange(block.key, block.key + block.keys, options);
  return attention_scores(plan.spec, q, k, query, key).masked_fill(unseen(plan.spec, query, key), nothing);
}

// Applies dropout to [heads, rows, keys].
Tensor kept(const Plan& plan, const Block& block, const Tensor& weights) {
  return dropout_rows(weights, plan.spec.dropout, plan.dropout_key, plan.first_token + block.row, block.key);
}

struct Blockwise : torch::autograd::Function<Blockwise> {
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const std::optional<Tensor>& sinks, Plan plan) {
    const int64_t heads = q.size(1);
    const auto wide = q.options().dtype(at::kFloat);
    const Tensor out = at::zeros({q.size(0), heads, v.size(2)}, q.options());
    const Tensor lse = context ? at::zeros({heads, q.size(0), 1}, wide) : Tensor();
    Tensor rows, most, sum,
        mixed;  // for a block of queries: [heads, rows, dim], [heads, rows, 1] twice, [heads, rows, v_dim]
    walk(
        plan,
        [&](const Block& block) {
          rows = queries_of(q, block, heads);
          const std::array<int64_t, 3> shape = {heads, block.rows, 1};
          most = sinks ? sinks->to(at::kFloat).view({-1, 1, 1}).expand(shape) : at::full(shape, nothing, wide);
          sum = at::full(shape, sinks ? 1.0 : 0.0, wide);
          mixed = at::zeros({heads, block.rows, v.size(2)}, wide);
        },
        [&](const Block& block) {
          const Tensor scores = block_scores(plan, block, rows, keys_of(k, block, heads));
          const Tensor higher = at::maximum(most, scores.amax(-1, true));
          const Tensor base = higher.masked_fill(higher.eq(nothing), 0.0);  // a row without visible keys so far
          const Tensor weights = at::exp(scores - base), fade = at::exp(most - base);
          sum = sum * fade + weights.sum(-1, true);
          mixed = mixed * fade + at::matmul(kept(plan, block, weights), keys_of(v, block, heads));
          most = higher;
        },
        [&](const Block& block) {
          out.narrow(0, block.row, block.rows).copy_((mixed / sum).transpose(0, 1));
          if (lse.defined()) lse.narrow(1, block.row, block.rows).copy_(most + at::log(sum));
        });
    if (context) {
      context->save_for_backward({q, k, v, out, lse, sinks.value_or(Tensor())});
      context->saved_data["plan"] = c10::IValue::make_capsule(c10::make_intrusive<PlanHolder>(std::move(plan)));
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &lse = saved[4], &sinks = saved[5];
    const auto holder = c10::static_intrusive_pointer_cast<PlanHolder>(context->saved_data["plan"].toCapsule());
    const Plan& plan = holder->plan;
    const int64_t heads = q.size(1);
    const auto wide = q.options().dtype(at::kFloat);
    const auto leaf = [](const Tensor& t) { return t.detach().requires_grad_(true); };
    const Tensor dq = at::zeros(q.sizes(), wide), dk = at::zeros(k.sizes(), wide), dv = at::zeros(v.sizes(), wide);
    Tensor dsinks = sinks.defined() ? at::zeros(sinks.sizes(), wide) : Tensor();
    Tensor rows, dout, normal, along;  // for a block of queries; along: dout . out, [heads, rows, 1]
    walk(
        plan,
        [&](const Block& block) {
          rows = leaf(q.narrow(0, block.row, block.rows));
          dout = queries_of(gradients[0], block, heads);
          normal = lse.narrow(1, block.row, block.rows);
          along = (dout * queries_of(out, block, heads)).sum(-1, true);
          if (dsinks.defined())
            dsinks.sub_((at::exp(sinks.to(at::kFloat).view({-1, 1, 1}) - normal) * along).sum({1, 2}));
        },
        [&](const Block& block) {
          const Tensor keys = leaf(k.narrow(0, block.key_row, block.keys));
          Tensor scores;
          {
            const at::AutoGradMode with_gradient(true);
            scores = block_scores(plan, block, heads_first(rows, heads), heads_first(keys, heads));
          }
          const Tensor weights = at::exp(scores.detach() - normal);
          const Tensor dweights = kept(plan, block, at::matmul(dout, keys_of(v, block, heads).transpose(1, 2)));
          const Tensor dvalues = at::matmul(kept(plan, block, weights).transpose(1, 2), dout).transpose(0, 1);
          dv.narrow(0, block.key_row, block.keys)
              .add_(dvalues.reshape({block.keys, v.size(1), heads / v.size(1), v.size(2)}).sum(2));
          const variable_list found = torch::autograd::grad({scores}, {rows, keys}, {weights * (dweights - along)});
          dq.narrow(0, block.row, block.rows).add_(found[0]);
          dk.narrow(0, block.key_row, block.keys).add_(found[1]);
        },
        [](const Block&) {});
    if (dsinks.defined()) dsinks = dsinks.to(sinks.scalar_type());
    return {dq.to(q.scalar_type()), dk.to(k.scalar_type()), dv.to(v.scalar_type()), dsinks, Tensor()};
  }
};

std::optional<std::string> refused_by_blocks(const AttentionNeed& need) {
  const AttentionSpec& spec = need.spec;
  if (spec.kind != AttentionKind::causal && spec.kind != AttentionKind::full) return "serves causal and full attention";
  if (spec.bias.defined()) return "knows no biases";
  if (spec.slopes.defined() && spec.slopes.requires_grad()) return "gives slopes no gradient";
  if (need.call.masked.defined()) return "does not support key masks";
  return std::nullopt;
}

Tensor attend_by_blocks(const AttentionNeed& need) {
  Plan plan{need.spec,
            {need.call.sequences.begin(), need.call.sequences.end()},
            need.call.dropout_key,
            need.call.first_token};
  plan.spec.sinks = Tensor();  // passed as an argument instead
  const auto sinks = argument(need.spec.sinks);
  if (need.gradients) return Blockwise::apply(need.q, need.k, need.v, sinks, std::move(plan));
  const at::NoGradGuard no_gradient;
  return Blockwise::forward(nullptr, need.q, need.k, need.v, sinks, std::move(plan));
}

}  // namespace

AttentionBackend blockwise_attention() {
  return {AttentionMechanism::blockwise, 5,
          "Blocks of queries and keys with a running softmax, in ATen: linear memory on any device.", refused_by_blocks,
          attend_by_blocks};
}

}  // namespace easydel::ops
