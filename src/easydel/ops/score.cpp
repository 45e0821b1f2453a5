#include "easydel/ops/score.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/kernels/log_probability.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/logit_chunks.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/ops/weight_gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Results of fp32 logits, which are not changed; each [rows]. entropy and correct are computed if they are defined.
struct OfLogits {
  Tensor logps, lse, entropy, correct;
};

void read_logits(const Tensor& logits, const Tensor& labels, const OfLogits& out) {
  if (tensor::kernels_serve(logits)) {
    const Tensor own = labels.contiguous();
    kernels::log_probabilities(tensor::executor(), tensor::input_of(logits), own.const_data_ptr<int64_t>(),
                               logits.size(0), logits.size(1),
                               {.logps = out.logps.mutable_data_ptr<float>(),
                                .lse = out.lse.mutable_data_ptr<float>(),
                                .entropy = out.entropy.defined() ? out.entropy.mutable_data_ptr<float>() : nullptr,
                                .correct = out.correct.defined() ? out.correct.mutable_data_ptr<bool>() : nullptr});
    return;
  }
  out.lse.copy_(at::logsumexp(logits, {1}));
  out.logps.copy_(logits.gather(1, labels.unsqueeze(1)).squeeze(1) - out.lse);
  if (out.correct.defined()) out.correct.copy_(logits.argmax(1) == labels);
  if (out.entropy.defined()) out.entropy.copy_(out.lse - (logits - out.lse.unsqueeze(1)).exp_().mul_(logits).sum(1));
}

// scale x gradient of the logits from that of each row's entropy, -p (log p + entropy).
Tensor entropy_gradient(const Tensor& logits, const Tensor& lse, const Tensor& on_entropy, double scale) {
  const Tensor logps = logits - lse.unsqueeze(1), p = logps.exp();
  const Tensor entropy = -(p * logps).sum(1, true);
  return p.mul_(logps + entropy).mul_(on_entropy.unsqueeze(1) * -scale);
}

// Writes scale x gradient into g, which may be the logits, from the gradients of each row's results (undefined: zero).
void differentiate(const Tensor& given, const Tensor& g, const Tensor& labels, const Tensor& lse,
                   const Tensor& on_label, const Tensor& on_uniform, const Tensor& on_lse, double scale) {
  if (tensor::kernels_serve(given)) {
    const auto numbers = [](const Tensor& t) { return t.defined() ? t.const_data_ptr<float>() : nullptr; };
    const kernels::LogProbabilityGradient gradient{.lse = numbers(lse),
                                                   .of_label = numbers(on_label),
                                                   .of_uniform = numbers(on_uniform),
                                                   .of_lse = numbers(on_lse),
                                                   .scale = float(scale)};
    kernels::log_probabilities_backward(tensor::executor(), gradient, tensor::input_of(given),
                                        labels.const_data_ptr<int64_t>(), given.size(0), given.size(1),
                                        tensor::output_of(g));
    return;
  }
  Tensor logits = (given - lse.unsqueeze(1)).exp_();  // now probabilities
  Tensor on_all = at::zeros({logits.size(0)}, lse.options());
  if (on_label.defined()) on_all.sub_(on_label);
  if (on_uniform.defined()) on_all.sub_(on_uniform);
  if (on_lse.defined()) on_all.add_(on_lse);
  logits.mul_(on_all.unsqueeze(1));
  if (on_uniform.defined()) logits.add_((on_uniform / double(logits.size(1))).unsqueeze(1));
  if (on_label.defined()) logits.scatter_add_(1, labels.unsqueeze(1), on_label.unsqueeze(1));
  if (scale != 1.0) logits.mul_(scale);
  g.copy_(logits);
}

// Which entries of the rows' logits count (ScoreRequest::kept).
class KeptEntries {
 public:
  KeptEntries(const Tensor& list, int64_t rows, int64_t vocabulary) {
    if (!list.defined()) return;
    const Tensor own = list.contiguous();
    const int64_t *next = own.const_data_ptr<int64_t>(), *const end = next + own.numel();
    for (int64_t row = 0; row < rows; ++row) {
      check(next < end && *next >= 0 && *next < end - next, "score: the list of kept tokens ends before row ", row);
      const int64_t* const first = next + 1;
      next = first + *next;
      check(std::all_of(first, next, [&](int64_t id) { return id >= 0 && id < vocabulary; }),
            "score: a kept token of row ", row, " is outside the vocabulary of ", vocabulary);
      rows_.emplace_back(first, next);
    }
    check(next == end, "score: kept tokens of more rows than ", rows);
  }

  // Takes the others out of the logits of rows that begin with this one.
  void apply(const Tensor& logits, int64_t begin) const {
    if (rows_.empty()) return;
    for (int64_t row = 0; row < logits.size(0); ++row) {
      const std::vector<int64_t>& ids = rows_[size_t(begin + row)];
      if (ids.empty()) continue;
      const Tensor places = at::tensor(at::IntArrayRef(ids), at::kLong).to(logits.device());
      Tensor all = logits.select(0, row);
      const Tensor values = all.index_select(0, places);
      all.fill_(left_out_logit).index_copy_(0, places, values);
    }
  }

 private:
  std::vector<std::vector<int64_t>> rows_;  // empty: nothing is taken out
};

struct Score : torch::autograd::Function<Score> {
  static variable_list forward(AutogradContext* context, const Tensor& hidden, const Tensor& master,
                               at::TensorList /*inputs_of(added)*/, const std::optional<Tensor>& own_bias,
                               Matrix weight, const std::vector<Factors>& added, const Tensor& labels,
                               const ScoreRequest& request) {
    const Tensor bias = own_bias.value_or(Tensor());
    const int64_t n = hidden.size(0), vocabulary = weight.out(), chunk = chunk_rows(n, vocabulary, request.chunk);
    if (!weight.packed && !weight.in_codes() && pays_to_pack_for(n, chunk)) weight.packed = pack(weight.compute);
    const auto options = hidden.options().dtype(at::kFloat);
    const auto when = [&](bool wanted) { return wanted ? at::empty({n}, options) : Tensor(); };
    const Tensor logps = at::empty({n}, options), normalizer = at::empty({n}, options);
    const Tensor uniform = when(request.uniform), entropy = when(request.entropy), mean = when(request.mean_logit);
    const Tensor square_sum = when(request.square_sum);
    const Tensor correct = request.correct ? at::empty({n}, options.dtype(at::kBool)) : Tensor();
    const LogitShape shape{request.multiplier, request.softcap, request.temperature};
    const KeptEntries entries(request.kept, n, vocabulary);
    // From the last chunk to the first, whose logits are kept: the backward begins there and needs the memory of one
    // chunk.
    Tensor first;
    for (int64_t end = n, begin; end > 0; end = begin) {
      begin = (end - 1) / chunk * chunk;
      const auto part = [&](const Tensor& t) { return t.slice(0, begin, end); };
      Tensor logits = chunk_logits(part(hidden), weight, bias, rows_of(added, begin, end), shape);
      entries.apply(logits, begin);
      const auto some = [&](const Tensor& t) { return t.defined() ? part(t) : t; };
      const Tensor lse = part(normalizer);
      read_logits(logits, part(labels), {part(logps), lse, some(entropy), some(correct)});
      if (request.mean_logit || request.uniform) {
        const Tensor average = logits.mean(1);
        if (request.mean_logit) part(mean).copy_(average);
        if (request.uniform) part(uniform).copy_(average - lse);
      }
      if (request.square_sum) part(square_sum).copy_(at::logsumexp(2 * logits, {1}) - 2 * lse);
      if (context && shape.softcap <= 0 && begin == 0) first = std::move(logits);
    }
    if (context) {
      variable_list kept = {hidden, weight.compute.detach(), bias, labels.contiguous(), normalizer};
      if (weight.in_codes()) context->saved_data["codes"] = held(weight);
      if (request.kept.defined()) context->saved_data["kept"] = request.kept;
      variable_list types;
      for (const Factors& one : added) {
        kept.insert(kept.end(), {one.x, one.weight.compute.detach()});
        types.push_back(one.weight.master.detach().slice(0, 0, 0));  // the master's dtype
      }
      kept.insert(kept.end(), types.begin(), types.end());
      context->save_for_backward(kept);
      if (first.defined()) context->saved_data["first"] = first;  // stored there so that the backward can release it
      context->saved_data["chunk"] = chunk;
      context->saved_data["temperature"] = request.temperature;
      context->saved_data["multiplier"] = request.multiplier;
      context->saved_data["softcap"] = request.softcap;
      context->saved_data["uniform"] = request.uniform;
      context->saved_data["log_normalizer"] = request.log_normalizer;
      context->saved_data["entropy"] = request.entropy && request.entropy_gradient;
      WeightGradient::remember(context, master);
      variable_list constant;
      if (entropy.defined() && !request.entropy_gradient) constant.push_back(entropy);
      for (const Tensor& t : {correct, mean, square_sum})
        if (t.defined()) constant.push_back(t);
      context->mark_non_differentiable(constant);
    }
    // Only the requested outputs: a graph cannot have undefined ones. The saved log-sum-exp must not be the output
    // itself, because a caller may write into that.
    variable_list out = {logps};
    if (request.uniform) out.push_back(uniform);
    if (request.log_normalizer) out.push_back(normalizer.clone());
    for (const Tensor& t : {entropy, correct, mean, square_sum})
      if (t.defined()) out.push_back(t);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &hidden = saved[0], &weight = saved[1], &bias = saved[2], &labels = saved[3], &normalizer = saved[4];
    const int64_t n = hidden.size(0), chunk = context->saved_data["chunk"].toInt();
    Matrix matrix{weight, weight, nullptr};
    if (const auto codes = context->saved_data.find("codes"); codes != context->saved_data.end())
      matrix = held_matrix(codes->second);
    else if (pays_to_pack_for(n, chunk))
      matrix.packed = pack(weight);
    const int64_t vocabulary = matrix.out();
    std::vector<Factors> added;
    const size_t further = (saved.size() - 5) / 3;
    for (size_t i = 0; i < further; ++i) {
      const Tensor &x = saved[5 + 2 * i], &w = saved[6 + 2 * i];
      added.push_back({x, {saved[5 + 2 * further + i], w, nullptr}});
    }
    std::vector<AddedGradient> of_added;
    for (size_t i = 0; i < further; ++i)
      of_added.emplace_back(added[i], context->needs_input_grad(2 + 2 * i), context->needs_input_grad(3 + 2 * i));
    const auto number = [&](const char* name) { return context->saved_data[name].toDouble(); };
    const LogitShape shape{number("multiplier"), number("softcap"), number("temperature")};
    size_t next = 0;
    const auto take = [&](const char* wanted) {
      return context->saved_data[wanted].toBool() ? gradients[next++] : Tensor();
    };
    const auto dense = [](const Tensor& t) { return t.defined() ? t.contiguous() : t; };
    const Tensor on_label = dense(gradients[next++]), on_uniform = dense(take("uniform"));
    const Tensor on_normalizer = dense(take("log_normalizer")), on_entropy = take("entropy");
    Tensor first;
    if (const auto found = context->saved_data.find("first"); found != context->saved_data.end()) {
      first = found->second.toTensor();
      context->saved_data.erase(found);
    }
    const bool want_hidden = context->needs_input_grad(0), want_weight = context->needs_input_grad(1);
    Tensor dx = want_hidden ? at::empty(hidden.sizes(), hidden.options()) : Tensor();
    std::optional<WeightGradient> dw;
    if (want_weight) dw.emplace(context, weight.sizes(), weight.options());
    Tensor db = bias.defined() && context->needs_input_grad(2 + 2 * further)
                    ? at::zeros({vocabulary}, normalizer.options())
                    : Tensor();
    const auto kept = context->saved_data.find("kept");
    const KeptEntries entries(kept == context->saved_data.end() ? Tensor() : kept->second.toTensor(), n, vocabulary);
    for (int64_t begin = 0; begin < n; begin += chunk) {
      const int64_t end = std::min(begin + chunk, n);
      const auto part = [&](const Tensor& t) { return t.slice(0, begin, end); };
      Tensor bent, logits = std::exchange(first, Tensor());
      if (!logits.defined()) {
        logits = chunk_logits(part(hidden), matrix, bias, rows_of(added, begin, end), shape, &bent);
        entries.apply(logits, begin);
      }
      // Computed directly in the dtype of gradients between layers if nothing else has to be done to it.
      const bool done = !bent.defined() && !db.defined() && !on_entropy.defined();
      const bool in_place = !done || hidden.scalar_type() == at::kFloat;
      Tensor g = in_place ? logits : at::empty(logits.sizes(), done ? hidden.options() : logits.options());
      const auto some = [&](const Tensor& t) { return t.defined() ? part(t) : t; };
      const double scale = shape.multiplier / shape.temperature;
      const Tensor by_entropy =
          on_entropy.defined() ? entropy_gradient(logits, part(normalizer), part(on_entropy), scale) : Tensor();
      differentiate(logits, g, part(labels), part(normalizer), some(on_label), some(on_uniform), some(on_normalizer),
                    scale);
      if (by_entropy.defined()) g.add_(by_entropy);
      if (bent.defined()) g.mul_(bent.square_().neg_().add_(1.0));
      if (db.defined()) db.add_(g.sum(0));
      g = g.to(hidden.scalar_type());
      logits = Tensor();
      if (want_hidden) part(dx).copy_(multiply_back(g, matrix, hidden.scalar_type()));
      if (want_weight) dw->add(g, part(hidden));
      for (AddedGradient& one : of_added) one.add(g, begin, end);
    }
    if (db.defined()) db = db.to(bias.scalar_type());
    variable_list out = {dx, dw ? dw->answer() : Tensor()};
    for (const AddedGradient& one : of_added) out.insert(out.end(), {one.x, one.answer()});
    out.insert(out.end(), {db, Tensor(), Tensor(), Tensor(), Tensor()});
    return out;
  }
};

}  // namespace

Tensor label_logps(const Tensor& logits, const Tensor& labels) {
  const Tensor logps = at::empty({logits.size(0)}, logits.options()), lse = at::empty_like(logps);
  read_logits(logits, labels, {logps, lse, {}, {}});
  return logps;
}

void exponentials(std::span<const float> numbers, float top, std::span<float> out) {
  check(numbers.size() == out.size(), "exponentials: ", out.size(), " places for ", numbers.size());
  if (numbers.empty()) return;
  // The gradient of the logarithm of a sum.
  const float all = 1;
  const int64_t label = 0, n = std::ssize(numbers);
  kernels::log_probabilities_backward(kernels::serial_executor(), {.lse = &top, .of_lse = &all},
                                      {numbers.data(), kernels::DType::f32, n}, &label, 1, n,
                                      {out.data(), kernels::DType::f32, n});
}

ScoreResult score(const Tensor& hidden, const Matrix& weight, const Tensor& bias, const Tensor& labels,
                  const ScoreRequest& request, const std::vector<Factors>& added) {
  check(hidden.dim() == 2 && labels.dim() == 1 && labels.size(0) == hidden.size(0), "score: hidden is ", hidden.sizes(),
        ", labels ", labels.sizes());
  const variable_list inputs = inputs_of(added);
  bool learns = wants_gradient(hidden, weight.master, bias);
  for (const Tensor& input : inputs) learns = learns || wants_gradient(input);
  const Matrix own = in_graph(weight, hidden);
  const at::TensorList list(inputs);
  const variable_list out =
      learns ? Score::apply(hidden, own.master, list, argument(bias), own, added, labels, request)
             : Score::forward(nullptr, hidden, own.master, list, argument(bias), own, added, labels, request);
  size_t next = 0;
  const auto take = [&](bool wanted) { return wanted ? out[next++] : Tensor(); };
  ScoreResult result;
  result.logps = out[next++];
  result.uniform = take(request.uniform);
  result.log_normalizer = take(request.log_normalizer);
  result.entropy = take(request.entropy);
  result.correct = take(request.correct);
  result.mean_logit = take(request.mean_logit);
  result.square_sum = take(request.square_sum);
  return result;
}

}  // namespace easydel::ops
