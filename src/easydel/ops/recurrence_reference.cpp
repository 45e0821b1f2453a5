#include "easydel/ops/recurrence_reference.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace easydel::ops {

Tensor recurrence_reference(const RecurrenceSpec& spec, const RecurrenceTensors& in,
                            const std::vector<int64_t>& cu_seqlens, const Tensor& states) {
  const at::ScalarType type = in.v.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const int64_t heads = in.v.size(1), repeat = heads / in.q.size(1);
  const auto per_head = [&](const Tensor& t) { return t.to(type).repeat_interleave(repeat, 1); };
  const Tensor q = per_head(in.q), k = per_head(in.k), v = in.v.to(type);
  // [heads, k_dim, v_dim], or a shape that broadcasts to it.
  const auto factor = [&](int64_t t) -> Tensor {
    if (in.by_column.defined()) {
      const Tensor rate = in.by_column[t].to(type).unsqueeze(1);
      return (in.slopes.defined() ? rate * in.slopes.to(type) : rate).exp();
    }
    const Tensor rate = in.rate[t].to(type).exp();
    return rate.dim() == 1 ? rate.view({heads, 1, 1}) : rate.unsqueeze(2);
  };
  std::vector<Tensor> out;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    Tensor state =
        states.defined() ? states[int64_t(s)].to(type) : at::zeros({heads, k.size(2), v.size(2)}, v.options());
    for (int64_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t) {
      const Tensor key = k[t].unsqueeze(2), query = q[t].unsqueeze(2);
      const Tensor found = state;
      if (in.by_column.defined() || in.rate.defined()) state = state * factor(t);
      Tensor u = v[t];
      if (spec.delta) u = (u - (state * key).sum(1)) * in.beta[t].to(type).unsqueeze(1);
      state = state + key * u.unsqueeze(1);
      out.push_back(((spec.read_before ? found : state) * query).sum(1));
    }
    if (states.defined()) states[int64_t(s)].copy_(state);
  }
  return out.empty() ? v : at::stack(out);
}

}  // namespace easydel::ops
