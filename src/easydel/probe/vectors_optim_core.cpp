// Recorded cases of optimizers: optim/step_tables (six updates of a matrix and of a vector) and optim/clip_grad_norm.
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"
#include "easydel/train/optimizer.h"

namespace easydel::probe {
namespace {

using train::OptimizerStates, train::UpdateRule;

// The arguments that a row gives to a class; others have the class's default.
class Given {
 public:
  explicit Given(const Value& args) : args_(args) {}
  double number(const char* name, double otherwise) const {
    const Value* const value = args_.find(name);
    return value && value->as_double() ? *value->as_double() : otherwise;
  }
  bool flag(const char* name, bool otherwise = false) const {
    const Value* const value = args_.find(name);
    return value ? value->as_bool().value_or(otherwise) : otherwise;
  }
  double beta(size_t i, double otherwise) const {
    const Value* const betas = args_.find("betas");
    return betas && i < betas->items.size() ? betas->items[i].as_double().value_or(otherwise) : otherwise;
  }
  std::string word(const char* name) const {
    const Value* const value = args_.find(name);
    return value ? value->scalar : "";
  }

 private:
  const Value& args_;
};

// Our rule for a class, and its names of our states.
struct Recorded {
  std::unique_ptr<UpdateRule> rule;
  std::map<std::string, std::string> names;
  double rate, decay;
};

Recorded recorded_of(const std::string& name, const Given& given) {
  const double rate = given.number("lr", 1e-3), decay = given.number("weight_decay", 0);
  if (name == "torch.AdamW" || name == "torch.Adam") {
    const bool coupled = name == "torch.Adam";
    auto rule = train::adamw(
        {given.beta(0, 0.9), given.beta(1, 0.999), given.number("eps", 1e-8), given.flag("amsgrad"), coupled});
    return {std::move(rule),
            {{"mean", "exp_avg"}, {"square", "exp_avg_sq"}, {"most", "max_exp_avg_sq"}},
            rate,
            given.number("weight_decay", coupled ? 0 : 1e-2)};
  }
  if (name == "torch.SGD")
    return {train::sgd({given.number("momentum", 0), given.number("dampening", 0), given.flag("nesterov")}),
            {{"momentum", "momentum_buffer"}},
            rate,
            decay};
  if (name == "torch.Muon")
    return {train::muon({given.number("momentum", 0.95), given.number("eps", 1e-7), given.flag("nesterov", true),
                         given.word("adjust_lr_fn") == "match_rms_adamw"}),
            {{"momentum", "momentum_buffer"}},
            rate,
            given.number("weight_decay", 0.1)};
  if (name == "torch.RMSprop")
    return {train::rmsprop({given.number("alpha", 0.99), given.number("eps", 1e-8), given.number("momentum", 0),
                            given.flag("centered")}),
            {{"square", "square_avg"}, {"momentum", "momentum_buffer"}, {"mean", "grad_avg"}},
            rate,
            decay};
  if (name == "torch.Adagrad")
    return {train::adagrad({given.number("eps", 1e-10), given.number("lr_decay", 0),
                            given.number("initial_accumulator_value", 0)}),
            {{"square", "sum"}},
            given.number("lr", 1e-2),
            decay};
  if (name == "torch.Adadelta")
    return {train::adadelta(given.number("rho", 0.9), given.number("eps", 1e-6)),
            {{"square", "square_avg"}, {"change", "acc_delta"}},
            given.number("lr", 1),
            decay};
  const train::AdamOptions adam{given.beta(0, 0.9), given.beta(1, 0.999), given.number("eps", 1e-8),
                                given.flag("decoupled_weight_decay")};
  const double adam_rate = given.number("lr", 2e-3);
  if (name == "torch.Adamax")
    return {train::adamax(adam), {{"mean", "exp_avg"}, {"most", "exp_inf"}}, adam_rate, decay};
  if (name == "torch.NAdam")
    return {train::nadam(adam, given.number("momentum_decay", 4e-3)),
            {{"mean", "exp_avg"}, {"square", "exp_avg_sq"}, {"product", "mu_product"}},
            adam_rate,
            decay};
  if (name == "torch.RAdam") return {train::radam(adam), {{"mean", "exp_avg"}, {"square", "exp_avg_sq"}}, rate, decay};
  if (name == "torch.Adafactor") {
    train::TorchAdafactorOptions options;
    options.clip = given.number("d", 1), options.decay_rate = given.number("beta2_decay", -0.8);
    return {train::torch_adafactor(options),
            {{"row", "row_var"}, {"column", "col_var"}, {"square", "variance"}},
            given.number("lr", 1e-2),
            decay};
  }
  if (name.starts_with("formula (MARS"))
    return {train::mars({given.beta(0, 0.95), given.beta(1, 0.99), given.number("eps", 1e-8),
                         given.number("gamma", 0.025), given.number("clip", 1)}),
            {},
            rate,
            decay};
  if (name.starts_with("formula (SOAP")) {
    train::SoapOptions options;
    options.frequency = int64_t(given.number("precondition_frequency", 10));
    options.max_rows = int64_t(given.number("max_precond_dim", 10000));
    return {train::soap(options), {}, rate, decay};
  }
  if (name == "transformers.Adafactor") {
    train::AdafactorOptions options;
    options.b1 = given.number("beta1", 0);
    options.scale_parameter = given.flag("scale_parameter", true);
    options.relative_step = given.flag("relative_step", true);
    options.warmup = given.flag("warmup_init");
    options.clip = given.number("clip_threshold", 1), options.decay_rate = given.number("decay_rate", -0.8);
    return {train::adafactor(options),
            {{"row", "exp_avg_sq_row"}, {"column", "exp_avg_sq_col"}, {"square", "exp_avg_sq"}, {"mean", "exp_avg"}},
            rate,
            decay};
  }
  if (name.starts_with("formula (Chen") || name == "bitsandbytes.Lion32bit")
    return {train::lion(given.beta(0, 0.9), given.beta(1, 0.99)), {}, rate, decay};
  if (name.starts_with("formula (quad") || name.starts_with("formula (skew")) {
    train::KronOptions options;
    options.block = int64_t(given.number("block_size", 256));
    options.max_dense = int64_t(given.number("max_size_dense", 16384));
    options.skew = name.starts_with("formula (skew");
    return {train::kron(options), {}, rate, decay};
  }
  if (name == "schedulefree.AdamWScheduleFree")
    return {train::schedule_free_adamw({given.beta(0, 0.9), given.beta(1, 0.999), given.number("eps", 1e-8),
                                        given.number("r", 0), given.number("weight_lr_power", 2)}),
            {},
            given.number("lr", 2.5e-3),
            decay};
  if (name == "bitsandbytes.AdEMAMix")
    return {train::ademamix({given.beta(0, 0.9), given.beta(1, 0.999), given.beta(2, 0.9999), given.number("alpha", 5),
                             given.number("eps", 1e-8), int64_t(given.number("t_alpha", 0)),
                             int64_t(given.number("t_beta3", 0))}),
            {},
            rate,
            given.number("weight_decay", 1e-2)};
  throw VectorNotBuilt("the optimizer " + name);
}

struct Run {
  std::vector<Tensor> after;  // each update
  OptimizerStates states;
};

Run run(const Recorded& recorded, const Tensor& start, const Tensor& gradients) {
  const at::NoGradGuard no_gradient;
  Tensor value = start.clone();
  Run out{{}, recorded.rule->start(value)};
  for (int64_t step = 1; step <= gradients.size(0); ++step) {
    const Tensor gradient = gradients[step - 1].contiguous();
    recorded.rule->update({value, gradient, out.states, step, recorded.rate, recorded.decay});
    out.after.push_back(value.clone());
  }
  return out;
}

Value states_of(const VectorCase& vector, const Recorded& recorded, const Run& made) {
  Value out = Value::map();
  for (const auto& [key, unused] : needed(vector, "state_after_last").entries) {
    if (key == "step") out.set(key, Value::number(double(made.after.size())));
    if (key == "RMS") {  // of the parameter before its last update
      const Tensor& before = made.after.at(made.after.size() - 2);
      out.set(key, Value::number(at::linalg_vector_norm(before).item<double>() / std::sqrt(double(before.numel()))));
    }
    for (const auto& [ours, theirs] : recorded.names)
      if (theirs == key) out.set(key, nested_of(made.states.find(ours)->second));
  }
  return out;
}

Value steps(const VectorCase& vector, const VectorFile& file) {
  const Value *start = file.document.find("param0"), *gradients = file.document.find("grads_per_step");
  if (!start || !gradients) refuse(file.path.string(), "has no param0 and grads_per_step");
  const Recorded recorded = recorded_of(needed(vector, "class").scalar, Given(needed(vector, "args")));
  const Tensor matrix = tensor_of(*start), all = tensor_of(*gradients);
  const Run made = run(recorded, matrix, all);
  Value out = Value::map();
  out.set("params_after_step", nested_of(at::stack(made.after)));
  if (vector.body.find("state_after_last")) out.set("state_after_last", states_of(vector, recorded, made));
  if (vector.body.find("params_evaluated"))
    out.set("params_evaluated", nested_of(recorded.rule->averaged(made.after.back(), made.states)));
  if (vector.body.find("params_1d_after_step"))
    out.set("params_1d_after_step", nested_of(at::stack(run(recorded, matrix[0], all.select(1, 0)).after)));
  return out;
}

Value expected_steps(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (const char* key : {"params_after_step", "state_after_last", "params_evaluated", "params_1d_after_step"})
    if (const Value* found = vector.body.find(key)) out.set(key, *found);
  return out;
}

Value clipped(const VectorCase& vector, const VectorFile& file) {
  const Value* const all = file.document.find("grads");
  if (!all) refuse(file.path.string(), "has no grads");
  const std::string& type = needed(vector, "norm_type").scalar;
  const double order = type == "inf" ? std::numeric_limits<double>::infinity() : std::stod(type);
  std::vector<Tensor> gradients, norms;
  for (const Value& one : all->items) gradients.push_back(tensor_of(one));
  for (const Tensor& gradient : gradients) norms.push_back(at::linalg_vector_norm(gradient, order));
  const double norm = at::linalg_vector_norm(at::stack(norms), order).item<double>();
  Value out = Value::map(), list = Value::list();
  const double factor = train::clip_factor(norm, needed(vector, "max_norm").as_double().value_or(1));
  for (const Tensor& gradient : gradients) list.items.push_back(nested_of(gradient * factor));
  out.set("total_norm", Value::number(norm));
  out.set("grads", std::move(list));
  return out;
}

Value expected_clipped(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  out.set("total_norm", needed(vector, "total_norm"));
  out.set("grads", needed(vector, "grads"));
  return out;
}

}  // namespace

VectorKind step_tables_vectors() { return {.name = "optim/step_tables", .answer = steps, .expected = expected_steps}; }
VectorKind clip_grad_norm_vectors() {
  return {.name = "optim/clip_grad_norm", .answer = clipped, .expected = expected_clipped};
}

}  // namespace easydel::probe
