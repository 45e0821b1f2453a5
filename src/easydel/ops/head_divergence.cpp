#include "easydel/ops/head_divergence.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/logit_chunks.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/ops/weight_gradient.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

LogitShape logit_shape(const HeadTerms& terms, double temperature) {
  return {terms.multiplier, terms.softcap, temperature};
}

// The rows of some logits, of which each has a result.
struct DivergenceRows {
  Tensor divergence;  // fp32 [rows], written
  Tensor entropy;     // the same; undefined: not requested
  Tensor gradient;    // fp32 [rows, vocabulary], written: of each divergence by the student's logits; undefined: none
};

// Between rows of logits that are divided by the temperature already.
void compare_rows(const Tensor& student, const Tensor& teacher, const DivergenceRequest& request,
                  const DivergenceRows& out) {
  const double beta = request.beta;
  const Tensor p = at::log_softmax(student, -1), probability = p.exp();
  if (out.entropy.defined()) out.entropy.copy_((probability * p).sum(-1).neg_());
  Tensor kept, q;  // the teacher's tokens, and their log-probabilities; kept is undefined if these are all
  if (request.teacher_top_k > 0 && request.teacher_top_k < teacher.size(-1)) {
    Tensor values;
    std::tie(values, kept) = at::topk(teacher, request.teacher_top_k, -1);
    q = at::log_softmax(values, -1);
  } else {
    q = at::log_softmax(teacher, -1);
  }
  // Of the teacher's tokens alone.
  const auto chosen = [&](const Tensor& all) { return kept.defined() ? all.gather(-1, kept) : all; };
  if (beta == 0) {
    const Tensor weights = q.exp();
    out.divergence.copy_((weights * (q - chosen(p))).sum(-1));
    if (!out.gradient.defined()) return;
    out.gradient.copy_(probability);
    if (kept.defined())
      out.gradient.scatter_add_(-1, kept, weights.neg());
    else
      out.gradient.sub_(weights);
    return;
  }
  Tensor mixture, ratio;
  if (beta == 1) {
    ratio = p - q;
    out.divergence.copy_((probability * ratio).sum(-1));
  } else {
    if (kept.defined()) {
      mixture = p + std::log1p(-beta);
      mixture.scatter_(-1, kept, at::logaddexp(mixture.gather(-1, kept), q + std::log(beta)));
    } else {
      mixture = at::logaddexp(p + std::log1p(-beta), q + std::log(beta));
    }
    ratio = (p - mixture).mul_(1 - beta);
    out.divergence.copy_((probability * ratio).sum(-1) + beta * (q.exp() * (q - chosen(mixture))).sum(-1));
  }
  if (!out.gradient.defined()) return;
  const Tensor mean = (probability * ratio).sum(-1, true);
  Tensor gradient = out.gradient;
  at::mul_out(gradient, probability, ratio.sub_(mean));
}

// compare_rows in blocks that stay in the caches.
void compare_chunk(const Tensor& student, const Tensor& teacher, const DivergenceRequest& request,
                   const DivergenceRows& out) {
  constexpr int64_t entries = 1 << 18;
  const int64_t rows = student.size(0), block = std::max<int64_t>(1, entries / student.size(1));
  for (int64_t begin = 0; begin < rows; begin += block) {
    const auto part = [&](const Tensor& t) {
      return t.defined() ? t.slice(0, begin, std::min(begin + block, rows)) : t;
    };
    compare_rows(part(student), part(teacher), request, {part(out.divergence), part(out.entropy), part(out.gradient)});
  }
}

struct HeadDivergence : torch::autograd::Function<HeadDivergence> {
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& master,
                               at::TensorList /*inputs_of(student.added)*/, const std::optional<Tensor>& /*bias*/,
                               HeadTerms student, HeadTerms teacher, const DivergenceRequest& request) {
    const int64_t n = x.size(0), chunk = chunk_rows(n, 2 * student.weight.out(), request.chunk);
    for (Matrix* weight : {&student.weight, &teacher.weight})
      if (!weight->packed && !weight->in_codes() && pays_to_pack_for(n, chunk)) weight->packed = pack(weight->compute);
    const auto options = x.options().dtype(at::kFloat);
    const Tensor divergence = at::empty({n}, options);
    const Tensor entropy = request.entropy ? at::empty({n}, options) : Tensor();
    const bool keeps_first = context && student.softcap <= 0;
    // From the last chunk to the first, whose gradient is kept: the backward begins there and needs the memory of one
    // chunk.
    Tensor first;
    for (int64_t end = n, begin; end > 0; end = begin) {
      begin = (end - 1) / chunk * chunk;
      const Chunk logits(student, teacher, request, begin, end);
      if (keeps_first && begin == 0) first = at::empty(logits.student.sizes(), options);
      compare_chunk(logits.student, logits.teacher, request,
                    {divergence.slice(0, begin, end), entropy.defined() ? entropy.slice(0, begin, end) : entropy,
                     begin == 0 ? first : Tensor()});
    }
    if (context) {
      context->save_for_backward(saved_tensors(student, teacher));
      if (first.defined()) context->saved_data["first"] = first;  // stored there so that the backward can release it
      for (const auto& [name, weight] : {std::pair{"codes", &student.weight}, {"teacher_codes", &teacher.weight}})
        if (weight->in_codes()) context->saved_data[name] = held(*weight);
      context->saved_data["chunk"] = chunk;
      context->saved_data["top_k"] = request.teacher_top_k;
      context->saved_data["added"] = int64_t(student.added.size());
      context->saved_data["teacher_added"] = int64_t(teacher.added.size());
      for (const auto& [name, number] : {std::pair{"beta", request.beta},
                                         {"temperature", request.temperature},
                                         {"multiplier", student.multiplier},
                                         {"softcap", student.softcap},
                                         {"teacher_multiplier", teacher.multiplier},
                                         {"teacher_softcap", teacher.softcap}})
        context->saved_data[name] = number;
      WeightGradient::remember(context, master);
      if (entropy.defined()) context->mark_non_differentiable({entropy});
    }
    return entropy.defined() ? variable_list{divergence, entropy} : variable_list{divergence};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto number = [&](const char* name) { return context->saved_data[name].toDouble(); };
    const auto integer = [&](const char* name) { return context->saved_data[name].toInt(); };
    HeadTerms student, teacher;
    restore(context->get_saved_variables(), size_t(integer("added")), size_t(integer("teacher_added")), student,
            teacher);
    for (const auto& [name, weight] : {std::pair{"codes", &student.weight}, {"teacher_codes", &teacher.weight}})
      if (const auto codes = context->saved_data.find(name); codes != context->saved_data.end())
        *weight = held_matrix(codes->second);
    student.multiplier = number("multiplier"), student.softcap = number("softcap");
    teacher.multiplier = number("teacher_multiplier"), teacher.softcap = number("teacher_softcap");
    DivergenceRequest request;
    request.beta = number("beta"), request.temperature = number("temperature"),
    request.teacher_top_k = integer("top_k");
    const int64_t n = student.x.size(0), chunk = integer("chunk");
    const size_t further = student.added.size();
    std::vector<AddedGradient> of_added;
    for (size_t i = 0; i < further; ++i)
      of_added.emplace_back(student.added[i], context->needs_input_grad(2 + 2 * i),
                            context->needs_input_grad(3 + 2 * i));
    const bool want_x = context->needs_input_grad(0), want_weight = context->needs_input_grad(1);
    const bool want_bias = student.bias.defined() && context->needs_input_grad(2 + 2 * further);
    const Tensor& weight = student.weight.compute;
    for (Matrix* one : {&student.weight, &teacher.weight})
      if (!one->in_codes() && pays_to_pack_for(n, chunk)) one->packed = pack(one->compute);
    Tensor dx = want_x ? at::empty(student.x.sizes(), student.x.options()) : Tensor();
    std::optional<WeightGradient> dw;
    if (want_weight) dw.emplace(context, weight.sizes(), weight.options());
    const auto options = student.x.options().dtype(at::kFloat);
    Tensor db = want_bias ? at::zeros({student.weight.out()}, options) : Tensor();
    const Tensor on_rows = (gradients[0] * (student.multiplier / request.temperature)).unsqueeze(1);
    Tensor first;
    if (const auto found = context->saved_data.find("first"); found != context->saved_data.end()) {
      first = found->second.toTensor();
      context->saved_data.erase(found);
    }
    for (int64_t begin = 0; begin < n; begin += chunk) {
      const int64_t end = std::min(begin + chunk, n);
      Tensor bent, g = std::exchange(first, Tensor());
      if (!g.defined()) {
        const Chunk logits(student, teacher, request, begin, end, &bent);
        g = at::empty(logits.student.sizes(), options);
        compare_chunk(logits.student, logits.teacher, request, {at::empty({end - begin}, options), {}, g});
      }
      g.mul_(on_rows.slice(0, begin, end));
      if (bent.defined()) g.mul_(bent.square_().neg_().add_(1.0));
      if (db.defined()) db.add_(g.sum(0));
      g = g.to(student.x.scalar_type());
      if (want_x) dx.slice(0, begin, end).copy_(multiply_back(g, student.weight, student.x.scalar_type()));
      if (want_weight) dw->add(g, student.x.slice(0, begin, end));
      for (AddedGradient& one : of_added) one.add(g, begin, end);
    }
    variable_list out = {dx, dw ? dw->answer() : Tensor()};
    for (const AddedGradient& one : of_added) out.insert(out.end(), {one.x, one.answer()});
    out.insert(out.end(), {db.defined() ? db.to(student.bias.scalar_type()) : db, Tensor(), Tensor(), Tensor()});
    return out;
  }

 private:
  // The logits of rows [begin, end).
  struct Chunk {
    Chunk(const HeadTerms& s, const HeadTerms& t, const DivergenceRequest& request, int64_t begin, int64_t end,
          Tensor* bent = nullptr)
        : student(chunk_logits(s.x.slice(0, begin, end), s.weight, s.bias, rows_of(s.added, begin, end),
                               logit_shape(s, request.temperature), bent)),
          teacher(chunk_logits(t.x.slice(0, begin, end), t.weight, t.bias, rows_of(t.added, begin, end),
                               logit_shape(t, request.temperature))) {}
    Tensor student, teacher;
  };

  static variable_list saved_tensors(const HeadTerms& student, const HeadTerms& teacher) {
    variable_list out;
    for (const HeadTerms* terms : {&student, &teacher}) {
      out.insert(out.end(), {terms->x, terms->weight.compute.detach(), terms->bias});
      for (const Factors& one : terms->added)
        out.insert(out.end(), {one.x, one.weight.compute.detach(), one.weight.master.detach().slice(0, 0, 0)});
    }
    return out;
  }

  // The masters are empty tensors of the masters' dtypes.
  static void restore(const variable_list& saved, size_t added, size_t teacher_added, HeadTerms& student,
                      HeadTerms& teacher) {
    size_t next = 0;
    const auto take = [&](HeadTerms& terms, size_t count) {
      terms.x = saved[next++];
      terms.weight.compute = terms.weight.master = saved[next++];
      terms.bias = saved[next++];
      for (size_t i = 0; i < count; ++i, next += 3)
        terms.added.push_back({saved[next], {saved[next + 2], saved[next + 1], nullptr}});
    };
    take(student, added);
    take(teacher, teacher_added);
  }
};

// The head of the first tokens alone.
HeadTerms narrowed(HeadTerms terms, int64_t vocabulary) {
  if (terms.weight.out() == vocabulary) return terms;
  const auto first = [&](Tensor& t) {
    if (t.defined()) t = t.slice(0, 0, vocabulary);
  };
  const auto cut = [&](Matrix& weight) {
    if (weight.in_codes()) return void(weight = first_rows(weight, vocabulary));
    first(weight.master);
    first(weight.compute);
    weight.packed = nullptr;
  };
  cut(terms.weight);
  first(terms.bias);
  for (Factors& one : terms.added) cut(one.weight);
  return terms;
}

}  // namespace

DivergenceResult head_divergence(const HeadTerms& of_student, const HeadTerms& of_teacher,
                                 const DivergenceRequest& request) {
  const int64_t vocabulary = std::min(of_student.weight.out(), of_teacher.weight.out());
  const HeadTerms student = narrowed(of_student, vocabulary), teacher = narrowed(of_teacher, vocabulary);
  check(student.x.dim() == 2 && teacher.x.dim() == 2 && student.x.size(0) == teacher.x.size(0),
        "head_divergence: hidden states are ", student.x.sizes(), " and ", teacher.x.sizes());
  check(request.beta >= 0 && request.beta <= 1 && (request.beta < 1 || request.teacher_top_k == 0),
        "head_divergence: beta ", request.beta, " with top k ", request.teacher_top_k);
  const variable_list inputs = inputs_of(student.added);
  bool learns = wants_gradient(student.x, student.weight.master, student.bias);
  for (const Tensor& input : inputs) learns = learns || wants_gradient(input);
  variable_list out;
  if (learns) {
    HeadTerms own = student, frozen = teacher;
    for (HeadTerms* const terms : {&own, &frozen}) terms->weight = in_graph(terms->weight, terms->x);
    frozen.x = frozen.x.detach();
    out = HeadDivergence::apply(own.x, own.weight.master, at::TensorList(inputs), argument(own.bias), own, frozen,
                                request);
  } else {
    const at::NoGradGuard no_gradient;
    out = HeadDivergence::forward(nullptr, student.x, student.weight.master, at::TensorList(inputs),
                                  argument(student.bias), student, teacher, request);
  }
  return {out[0], request.entropy ? out[1] : Tensor()};
}

}  // namespace easydel::ops
