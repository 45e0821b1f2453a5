// Attention in blocks of keys with a running softmax (arXiv 2307.08691), over flat tokens: the default on a CPU. Memory
// is linear; a row's bits do not depend on the rows computed with it. The loops are kernels/attention.h.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "easydel/base/error.h"
#include "easydel/ops/attention_backends.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/key_pages.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The arguments of a call except its tensors; saved for the backward.
struct KernelShape {
  kernels::AttentionSpec spec;
  std::vector<kernels::AttentionSequence> sequences;
  Tensor key_scales, value_scales;  // of codes

  int64_t queries() const { return sum(&kernels::AttentionSequence::queries); }
  int64_t keys() const { return sum(&kernels::AttentionSequence::keys); }

 private:
  int64_t sum(int64_t kernels::AttentionSequence::*count) const {
    int64_t all = 0;
    for (const kernels::AttentionSequence& s : sequences) all += s.*count;
    return all;
  }
};

struct KernelShapeHolder : torch::CustomClassHolder {
  explicit KernelShapeHolder(KernelShape s) : shape(std::move(s)) {}
  KernelShape shape;
};

KernelShape shape_of(const AttentionNeed& need) {
  KernelShape shape;
  shape.spec.heads = need.q.size(1);
  shape.spec.kv_heads = need.k.size(1);
  shape.spec.head_dim = need.q.size(2);
  shape.spec.v_dim = head_dim_of(need.v);
  shape.spec.scale = float(need.spec.scale);
  shape.spec.causal = need.spec.kind == AttentionKind::causal;
  shape.spec.window = need.spec.window;
  shape.spec.chunk = need.spec.chunk;
  shape.spec.softcap = float(need.spec.softcap);
  shape.spec.rounded_slopes = need.spec.slopes.defined() && need.spec.slopes_in_bf16;
  shape.key_scales = need.call.key_scales, shape.value_scales = need.call.value_scales;
  for (const AttentionRange& range : need.call.sequences) {
    kernels::AttentionSequence sequence;
    sequence.first_query = range.begin;
    sequence.queries = range.end - range.begin;
    sequence.keys = range.key_end - range.key_begin;
    sequence.past = sequence.keys - sequence.queries;
    sequence.first_key = range.key_begin;
    if (need.k.dim() == 4) sequence.pages = range.pages.data(), sequence.page_tokens = need.k.size(2);
    shape.sequences.push_back(sequence);
  }
  return shape;
}

// An output of `tokens` rows, of which the sequences write `covered`. Rows that no sequence writes are 0.
Tensor room(at::IntArrayRef sizes, const at::TensorOptions& options, int64_t covered) {
  return covered < sizes[0] ? at::zeros(sizes, options) : at::empty(sizes, options);
}

// Keys or values: [keys, kv_heads, dim], or pages [pages, kv_heads, page_tokens, dim].
kernels::Heads keys_of(const Tensor& x, const Tensor& scales) {
  if (x.dim() == 3) return tensor::heads_of(x);
  kernels::Heads heads{
      x.const_data_ptr(), tensor::page_dtype(x.scalar_type()), x.stride(2), x.stride(1), x.stride(0), {}};
  if (scales.defined())
    heads.scales = {scales.const_data_ptr<float>(), scales.stride(2), scales.stride(1), scales.stride(0),
                    scales.size(3)};
  return heads;
}

struct Flash : torch::autograd::Function<Flash> {
  static Tensor forward(AutogradContext* context, const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                        const std::optional<Tensor>& sinks_in, const std::optional<Tensor>& slopes_in,
                        KernelShape shape, AttentionMemory* memory) {
    const Tensor q = tensor::contiguous_rows(q_in), k = tensor::contiguous_rows(k_in),
                 v = tensor::contiguous_rows(v_in);
    const Tensor sinks = wide(sinks_in), slopes = wide(slopes_in);
    Tensor out, lse;
    if (memory && memory->out.defined()) {
      out = memory->out.detach(), lse = memory->normalizers;
    } else {
      out = room({q.size(0), q.size(1), shape.spec.v_dim}, q.options(), shape.queries());
      if (context || memory) lse = at::zeros({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));
      kernels::AttentionSpec spec = shape.spec;
      spec.sinks = numbers(sinks), spec.slopes = numbers(slopes);
      const kernels::Heads q_heads = tensor::heads_of(q), k_heads = keys_of(k, shape.key_scales),
                           v_heads = keys_of(v, shape.value_scales);
      kernels::attend(tensor::executor(), spec, shape.sequences, q_heads, k_heads, v_heads,
                      tensor::mutable_heads_of(out), lse.defined() ? lse.mutable_data_ptr<float>() : nullptr,
                      kernels::attention_order(q_heads.dtype, k_heads.dtype, v_heads.dtype));
      if (memory) *memory = {out.detach(), lse};
    }
    if (context) {
      context->save_for_backward({q, k, v, out, lse, sinks, slopes});
      if (sinks_in) context->saved_data["sinks_type"] = int64_t(sinks_in->scalar_type());
      context->saved_data["shape"] =
          c10::IValue::make_capsule(c10::make_intrusive<KernelShapeHolder>(std::move(shape)));
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &sinks = saved[5];
    const auto holder = c10::static_intrusive_pointer_cast<KernelShapeHolder>(context->saved_data["shape"].toCapsule());
    kernels::AttentionSpec spec = holder->shape.spec;
    spec.sinks = numbers(sinks), spec.slopes = numbers(saved[6]);
    const Tensor dout = tensor::contiguous_rows(gradients[0]);
    const int64_t keys = holder->shape.keys();
    const Tensor dq = room(q.sizes(), q.options(), holder->shape.queries());
    const Tensor dk = room(k.sizes(), k.options(), keys), dv = room(v.sizes(), v.options(), keys);
    Tensor dsinks = sinks.defined() ? at::zeros(sinks.sizes(), sinks.options()) : Tensor();
    kernels::AttentionGradient g;
    g.q = tensor::heads_of(q);
    g.k = tensor::heads_of(k);
    g.v = tensor::heads_of(v);
    g.out = tensor::heads_of(saved[3]);
    g.dout = tensor::heads_of(dout);
    g.lse = saved[4].const_data_ptr<float>();
    g.dq = tensor::mutable_heads_of(dq);
    g.dk = tensor::mutable_heads_of(dk);
    g.dv = tensor::mutable_heads_of(dv);
    g.dsinks = dsinks.defined() ? dsinks.mutable_data_ptr<float>() : nullptr;
    kernels::attend_backward(tensor::executor(), spec, holder->shape.sequences, g);
    if (dsinks.defined()) dsinks = dsinks.to(at::ScalarType(context->saved_data["sinks_type"].toInt()));
    return {dq, dk, dv, dsinks, Tensor(), Tensor(), Tensor()};
  }

 private:
  static Tensor wide(const std::optional<Tensor>& t) { return t ? t->to(at::kFloat).contiguous() : Tensor(); }
  static const float* numbers(const Tensor& t) { return t.defined() ? t.const_data_ptr<float>() : nullptr; }
};

std::optional<std::string> refused_by_kernel(const AttentionNeed& need) {
  const AttentionSpec& spec = need.spec;
  const bool coded = need.call.key_scales.defined();
  if (!tensor::kernels_serve(need.q) || !(coded ? need.k.is_cpu() : tensor::kernels_serve(need.k, need.v)))
    return "works on a CPU in fp32 and bf16";
  if (spec.kind == AttentionKind::spans) return "knows no spans";
  if (spec.bias.defined()) return "knows no biases";
  if (spec.slopes.defined() && spec.slopes_in_bf16 && spec.softcap > 0) return "rounds no slopes below a softcap";
  if (spec.slopes.defined() && spec.slopes.requires_grad()) return "gives slopes no gradient";
  if (spec.dropout > 0) return "has no dropout";
  if (need.call.masked.defined()) return "does not support key masks";
  if (need.k.dim() == 4 && need.gradients) return "gives no gradient through a cache";
  return std::nullopt;
}

Tensor attend_by_kernel(const AttentionNeed& need) {
  KernelShape shape = shape_of(need);
  const auto sinks = argument(need.spec.sinks), slopes = argument(need.spec.slopes);
  if (!need.gradients)
    return Flash::forward(nullptr, need.q, need.k, need.v, sinks, slopes, std::move(shape), need.call.memory);
  return Flash::apply(need.q, need.k, need.v, sinks, slopes, std::move(shape), need.call.memory);
}

}  // namespace

AttentionBackend flash_attn2_attention() {
  return {AttentionMechanism::flash_attn2,
          20,
          "Blocks of keys with a running softmax: linear memory, one order of additions.",
          refused_by_kernel,
          attend_by_kernel,
          /*reads_pages=*/true};
}

}  // namespace easydel::ops
