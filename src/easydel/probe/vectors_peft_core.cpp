// Adapters that PEFT saved, with the logits of their model: trl_goldens/peft/NAME/expected.json. The adapter is in the
// file's folder, its model in a folder above that.
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/adapter.h"
#include "easydel/models/adapter_names.h"
#include "easydel/models/model.h"
#include "easydel/probe/vectors.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

Value numbers(const Tensor& values) {
  const Tensor flat = values.detach().to(at::kCPU, at::kDouble).flatten();
  Value out = Value::list();
  for (int64_t i = 0; i < flat.size(0); ++i) out.items.push_back(Value::number(flat[i].item<double>()));
  return out;
}

Value checksum(const Tensor& values, int64_t first) {
  const Tensor flat = values.detach().to(at::kCPU, at::kDouble).flatten();
  Value out = Value::map(), shape = Value::list();
  for (const int64_t size : values.sizes()) shape.items.push_back(Value::integer(size));
  out.set("shape", shape);
  out.set("sum", Value::number(flat.sum().item<double>()));
  out.set("abs_sum", Value::number(flat.abs().sum().item<double>()));
  out.set("l2", Value::number(at::linalg_vector_norm(flat).item<double>()));
  out.set("first", numbers(flat.narrow(0, 0, std::min(first, flat.size(0)))));
  return out;
}

Value number(double value) { return Value::number(value); }

// The folder of the model: the name is of a path below one of the folders above the case.
fs::path model_of(const std::string& name, const fs::path& file) {
  for (fs::path above = files::absolute(file).parent_path(); above != above.root_path(); above = above.parent_path())
    if (files::exists(above / name / "config.json")) return above / name;
  refuse(file.string(), "the model folder '" + name + "' is not in a folder above it");
}

Tensor logits_of(const models::Model& model, const Tensor& ids) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, ids.size(0)});
  const Tensor hidden = model.forward({ids}, pass).hidden;
  return model.head().logits(hidden, pass);
}

int64_t entries_of(const Value& recorded, const char* name, const char* inner) {
  const Value* const all = recorded.find(name);
  if (!all || all->entries.empty()) return 0;
  const Value* const list = all->entries.front().second.find(inner);
  return list ? int64_t(list->items.size()) : 0;
}

// The weights of the model's files, by name, while adapters are merged.
std::map<std::string, Tensor> weights_of(const models::Model& model) {
  std::map<std::string, Tensor> out;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.adapter) out[entry.path] = entry.shard.detach();
  return out;
}

Value answer_adapter(const VectorCase& vector, const VectorFile& file) {
  const Value& recorded = vector.body;
  const fs::path folder = files::absolute(file.path).parent_path();
  const fs::path base = model_of(needed(vector, "base_model").scalar, file.path);
  std::vector<int64_t> row;
  for (const Value& id : needed(vector, "input_ids").items.at(0).items) row.push_back(id.as_int().value_or(0));
  const Tensor ids = at::tensor(row, at::kLong);
  models::LoadOptions load;
  load.dtype = load.param_dtype = models::DTypeSetting::fp32;
  const auto plain = models::load_model(base, load);
  load.adapters = {models::adapter_in(folder)};
  load.training = true;
  const auto model = models::load_model(base, load);
  const Tensor without = logits_of(*plain, ids), with = logits_of(*model, ids);

  Value out = Value::map();
  for (const char* name : {"name", "base_model", "lora_config", "input_ids"}) out.set(name, needed(vector, name));
  int64_t trainable = 0, elements = 0;
  for (const nn::Entry& entry : model->parameters().entries())
    if (entry.trainable) ++trainable, elements += entry.elements();
  out.set("num_trainable", Value::integer(trainable));
  out.set("trainable_params", Value::integer(elements));
  out.set("logits_base_last", numbers(without[-1]));
  out.set("logits_adapter_last", numbers(with[-1]));
  out.set("logits_adapter_all_checksum", checksum(with, 8));

  Value tensors = Value::map();
  const int64_t first = entries_of(recorded, "adapter_tensors", "first");
  const models::Adapter& adapter = *model->adapters().front();
  for (const auto& [name, value] : needed(vector, "adapter_tensors").entries) {
    // By the name that the parameter has in PEFT's model: with the adapter's name in it.
    for (const nn::Entry& entry : model->parameters().entries())
      if (adapter.owns(entry) && name == models::peft_name(entry))
        tensors.set(name, checksum(entry.source.transposed ? entry.shard.t() : entry.shard, first));
      else if (!entry.adapter && adapter.learns(entry) &&
               name == str(models::peft_prefix, entry.path.substr(0, entry.path.rfind('.')), ".modules_to_save.default",
                           entry.path.substr(entry.path.rfind('.'))))
        tensors.set(name, checksum(entry.shard, first));
  }
  out.set("adapter_tensors", tensors);
  model->adapters().front()->merge();
  const Tensor merged = logits_of(*model, ids);
  out.set("logits_merged_last", numbers(merged[-1]));
  out.set("max_abs_merged_minus_adapter", number((merged - with).abs().max().item<double>()));
  out.set("max_abs_adapter_minus_base", number((with - without).abs().max().item<double>()));
  Value changed = Value::map();
  const int64_t shown = entries_of(recorded, "merged_changed_tensors", "first");
  const std::map<std::string, Tensor> before = weights_of(*plain);
  for (const auto& [name, value] : weights_of(*model))
    if (!value.equal(before.at(name))) changed.set(name, checksum(value, shown));
  out.set("merged_changed_tensors", changed);
  return out;
}

// The recorded result is the whole document.
Value recorded_adapter(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  out.set("ok", vector.body);
  return out;
}

}  // namespace

VectorKind peft_adapter_vectors() {
  return {.name = "peft_adapter",
          .answer = answer_adapter,
          .relative = 1e-5,
          .absolute = 2e-4,
          .expected = recorded_adapter};
}

}  // namespace easydel::probe
