#include "easydel/train/state_files.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/models/adapter.h"
#include "easydel/nn/shards.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/executor.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view state_name = "state.json", optimizer_folder = "optimizer",
                           optimizer_name = "optimizer-00001-of-00001.safetensors";

// Of a checkpoint. Earlier versions wrote it next to the model; empty: there is none.
fs::path optimizer_file(const fs::path& folder) {
  for (const fs::path& path : {folder / optimizer_folder / optimizer_name, folder / optimizer_name})
    if (files::exists(path)) return path;
  return {};
}

weights::OutTensor out_tensor(std::string name, const Tensor& tensor) {
  weights::OutTensor out;
  out.name = std::move(name);
  switch (tensor.scalar_type()) {
    case at::kFloat:
      out.dtype = weights::DType::f32;
      break;
    case at::kBFloat16:
      out.dtype = weights::DType::bf16;
      break;
    case at::kHalf:
      out.dtype = weights::DType::f16;
      break;
    case at::kLong:
      out.dtype = weights::DType::i64;
      break;
    case at::kByte:
      out.dtype = weights::DType::u8;
      break;
    case at::kDouble:
      out.dtype = weights::DType::f64;
      break;
    default:
      throw Bug(out.name + ": a dtype that checkpoints do not support");
  }
  out.shape = tensor.sizes().vec();
  out.write = [tensor](const std::function<void(const void*, size_t)>& sink) {
    const Tensor whole = tensor.detach().to(at::kCPU).contiguous();
    sink(whole.data_ptr(), size_t(whole.nbytes()));
  };
  return out;
}

bool model_is_fp32(const fs::path& folder) {
  const auto saved = weights::Folder::open(folder);
  for (const std::string& name : saved.names())
    if (saved.at(name).dtype != weights::DType::f32) return false;
  return true;
}

weights::TensorView view_of(const weights::SafetensorsFile& file, const std::string& name) {
  if (!file.has(name))
    refuse(file.path().string(), str("has no ", name), "the checkpoint is of another optimizer or of another model");
  return file.at(name);
}

// A tensor of the file as `shape` and `as` say it is.
Tensor host_tensor(const weights::SafetensorsFile& file, const std::string& name, const std::vector<int64_t>& shape,
                   at::TensorOptions as) {
  const weights::TensorView view = view_of(file, name);
  // The file's bytes are aligned as the format promises, which is not enough for a tensor of its own.
  const Tensor host = at::empty(shape, as.device(at::kCPU).requires_grad(false));
  if (view.shape != shape || view.bytes.size() != size_t(host.nbytes()))
    refuse(file.path().string(), str(name, " is not of the shape that the model has"),
           "the checkpoint is of another model");
  std::memcpy(host.data_ptr(), view.bytes.data(), view.bytes.size());
  return host;
}

// A tensor of the file, into `to`: the whole of it, or where `to` is cut like the entry's shard, this rank's part.
void copy_into(const Tensor& to, const nn::Entry* entry, const weights::SafetensorsFile& file,
               const std::string& name) {
  const c10::AutoGradMode no_grad(false);
  const Tensor host = host_tensor(file, name, entry ? entry->shape : to.sizes().vec(), to.options());
  to.copy_(entry ? entry->team->cut(host, entry->layout) : host);
}

// Whether a state is the same on all ranks instead of being cut like its parameter.
bool is_whole(const Optimizer::Slot& slot, std::string_view name, const Tensor& state) {
  return (slot.rule->whole() && name != "ema" && name != "trained") || (state.dim() == 0 && !slot.entry->shape.empty());
}

int64_t integer(const Value& state, std::string_view name, const fs::path& file) {
  const Value* value = state.find(name);
  if (!value || !value->as_int()) refuse(file.string(), str("has no whole number '", name, "'"));
  return *value->as_int();
}

}  // namespace

Tensor SavedState::tensor(const std::string& name) const {
  const weights::TensorView view = view_of(file_, name);
  return host_tensor(file_, name, view.shape, at::TensorOptions().dtype(tensor::scalar_type(view.dtype)));
}

void SavedState::copy_into(const Tensor& to, const std::string& name, const nn::Entry* entry) const {
  train::copy_into(to, entry, file_, name);
}

std::string order_class(at::ScalarType compute) {
  const std::string of_bf16 = compute == at::kBFloat16 ? str(kernels::name(kernels::bf16_order()), ", ") : "";
  return str("ascending-1, ", of_bf16, tensor::executor().size(), " threads");
}

const models::Adapter* trained_adapter(const models::Model& model) {
  return model.adapters().empty() ? nullptr : model.adapters().back().get();
}

bool merges_adapter(const models::Model& model, bool merge_lora_before_save) {
  return trained_adapter(model) && merge_lora_before_save;
}

models::MergeOptions merge_of_run(const models::Model& model, const models::LoadOptions& load) {
  const models::Adapter* const adapter = trained_adapter(model);
  if (!adapter) return {};
  const models::LoraConfig& lora = adapter->options().config;
  return models::merge_options(model, load, {.base = lora.merge_base, .to_codes = lora.merge_to_codes});
}

bool is_of_training(std::string_view name) {
  return name == state_name || name == "manifest.json" || name.starts_with("optimizer/") || name.starts_with("ema/") ||
         (name.starts_with("optimizer-") && name.ends_with(".safetensors"));
}

namespace {

Value written(const RunHistory::Evaluation& evaluation) {
  Value out = Value::map();
  out.set("step", Value::integer(evaluation.step));
  out.set("loss", Value::number(evaluation.loss));
  return out;
}

Value written(const RunHistory& history) {
  Value out = Value::map();
  out.set("seconds", Value::number(history.seconds));
  out.set("unrecorded_loss", Value::number(history.unrecorded_loss));
  out.set("unrecorded_steps", Value::integer(history.unrecorded_steps));
  if (history.first_evaluation) out.set("first_evaluation", written(*history.first_evaluation));
  if (history.last_evaluation) out.set("last_evaluation", written(*history.last_evaluation));
  if (history.last_benchmarks) {
    Value benchmarks = Value::map(), metrics = Value::map();
    for (const auto& [name, value] : history.last_benchmarks->metrics) metrics.set(name, Value::number(value));
    benchmarks.set("step", Value::integer(history.last_benchmarks->step));
    benchmarks.set("metrics", std::move(metrics));
    out.set("last_benchmarks", std::move(benchmarks));
  }
  if (history.last_preview) out.set("last_preview", Value::integer(*history.last_preview));
  if (!history.best_model.is_null()) out.set("best_model", history.best_model);
  return out;
}

double number(const Value& map, std::string_view name, const fs::path& file) {
  const Value* value = map.find(name);
  if (!value || !value->as_double()) refuse(file.string(), str("has no number '", name, "'"));
  return *value->as_double();
}

std::optional<RunHistory::Evaluation> read_evaluation(const Value& history, std::string_view name,
                                                      const fs::path& file) {
  const Value* const value = history.find(name);
  if (!value) return std::nullopt;
  return RunHistory::Evaluation{integer(*value, "step", file), number(*value, "loss", file)};
}

RunHistory read_history(const Value& value, const fs::path& file) {
  RunHistory out;
  out.seconds = number(value, "seconds", file);
  out.unrecorded_loss = number(value, "unrecorded_loss", file);
  out.unrecorded_steps = integer(value, "unrecorded_steps", file);
  out.first_evaluation = read_evaluation(value, "first_evaluation", file);
  out.last_evaluation = read_evaluation(value, "last_evaluation", file);
  if (const Value* const benchmarks = value.find("last_benchmarks")) {
    RunHistory::Benchmarked& last = out.last_benchmarks.emplace();
    last.step = integer(*benchmarks, "step", file);
    if (const Value* const metrics = benchmarks->find("metrics"))
      for (const auto& [name, metric] : metrics->entries)
        last.metrics.emplace_back(name, metric.as_double().value_or(NAN));
  }
  if (const Value* const preview = value.find("last_preview")) out.last_preview = preview->as_int();
  if (const Value* best = value.find("best_model")) out.best_model = *best;
  return out;
}

// What the configuration that a checkpoint was written with says of it; nothing: it has none.
std::optional<bool> asked_for_optimizer(const Value& document) {
  const Value* const trainer = document.find("trainer");
  const Value* const saved = trainer ? trainer->find("save_optimizer_state") : nullptr;
  return saved ? saved->as_bool() : std::nullopt;
}

}  // namespace

std::string missing_in_state(const fs::path& checkpoint, const std::set<std::string>& listed) {
  const auto not_listed = [](std::string_view name) { return str("its manifest.json does not list ", name); };
  const std::string adapter = "adapter/";
  const bool is_adapter = listed.contains(adapter + std::string(models::adapter_config_name));
  std::vector<std::string> needed = {std::string(state_name)};
  needed.push_back(is_adapter ? adapter + std::string(models::adapter_weights_name) : "config.json");
  for (const std::string& name : needed)
    if (!listed.contains(name)) return not_listed(name);
  constexpr std::string_view whole = "model.safetensors", index = "model.safetensors.index.json";
  if (listed.contains(std::string(index))) {
    const Value document = parse_file(checkpoint / index);
    const Value* const map = document.find("weight_map");
    if (!map || !map->is_map()) return str(index, " has no weight_map");
    for (const auto& [tensor, shard] : map->entries)
      if (!listed.contains(shard.scalar)) return not_listed(shard.scalar);
  } else if (!is_adapter && !listed.contains(std::string(whole))) {
    return not_listed(whole);
  }
  const RunState state = read_state(checkpoint);
  const bool optimizer = std::ranges::any_of(
      listed, [](const std::string& name) { return name.starts_with("optimizer") && name.ends_with(".safetensors"); });
  return state.has_optimizer && !optimizer ? not_listed("the optimizer's state") : "";
}

void write_state(const fs::path& folder, const RunState& state) {
  Value out = Value::map(), randomness = Value::map();
  randomness.set("generator", Value::text("philox4x32-10"));
  randomness.set("seed", Value::integer(int64_t(state.seed)));
  out.set("format", Value::integer(1));
  out.set("step", Value::integer(state.step));
  out.set("tokens_seen", Value::integer(state.tokens_seen));
  out.set("optimizer_steps", Value::integer(state.optimizer_steps));
  out.set("cursor", state.cursor);
  out.set("randomness", randomness);
  out.set("data", Value::text(state.data));
  out.set("update", Value::integer(state.update));
  out.set("order_class", Value::text(state.order_class));
  if (!state.bad_rows.is_null()) out.set("bad_rows", state.bad_rows);
  if (!state.method.is_null()) out.set("method", state.method);
  out.set("optimizer_state", Value::boolean(state.has_optimizer));
  if (state.history) out.set("history", written(*state.history));
  out.set("config", state.document);
  files::write(folder / state_name, to_json(out, 2) + "\n");
}

RunState read_state(const fs::path& folder) {
  const fs::path file = folder / state_name;
  const Value value = parse_file(file);
  RunState state;
  state.step = integer(value, "step", file);
  state.tokens_seen = integer(value, "tokens_seen", file);
  state.optimizer_steps = integer(value, "optimizer_steps", file);
  state.update = integer(value, "update", file);
  if (const Value* randomness = value.find("randomness")) state.seed = uint64_t(integer(*randomness, "seed", file));
  if (const Value* data = value.find("data")) state.data = data->scalar;
  if (const Value* order = value.find("order_class")) state.order_class = order->scalar;
  if (const Value* cursor = value.find("cursor")) state.cursor = *cursor;
  if (const Value* bad_rows = value.find("bad_rows")) state.bad_rows = *bad_rows;
  if (const Value* method = value.find("method")) state.method = *method;
  if (const Value* document = value.find("config")) state.document = *document;
  const Value* const optimizer = value.find("optimizer_state");
  state.has_optimizer =
      optimizer ? optimizer->as_bool().value_or(true) : asked_for_optimizer(state.document).value_or(false);
  if (const Value* history = value.find("history")) state.history = read_history(*history, file);
  return state;
}

void write_optimizer(const Ranks& ranks, const fs::path& folder, Optimizer& optimizer, const MethodState& method) {
  std::vector<weights::OutTensor> tensors;
  std::set<std::string> names;
  // `entry`: how the part is cut; null: it is whole.
  const auto add = [&](const std::string& name, const Tensor& part, const nn::Entry* entry) {
    check(names.insert(name).second, "two tensors of a checkpoint are called ", name);
    const Tensor whole = entry ? nn::whole_of(*entry, part) : part;
    if (ranks.first()) tensors.push_back(out_tensor(name, whole));
  };
  // An adapter is saved in fp32.
  const bool masters = ranks.any(ranks.first() && !files::exists(adapter_folder(folder)) && !model_is_fp32(folder));
  for (const Optimizer::Slot& slot : optimizer.slots()) {
    const std::string& path = slot.entry->path;
    if (masters) add("master." + path, slot.entry->shard, slot.entry);
    for (const auto& [name, state] : slot.states)
      add(str(name, ".", path), state, is_whole(slot, name, state) ? nullptr : slot.entry);
  }
  for (const MethodState::Item& item : method.tensors) add(item.name, item.tensor, item.entry);
  if (!ranks.first()) return;
  files::make_directories(folder / optimizer_folder);
  weights::write_safetensors(folder / optimizer_folder / optimizer_name, tensors);
}

void load_weights(const fs::path& folder, const models::LoadOptions& load, models::Model& model) {
  if (const models::Adapter* const adapter = trained_adapter(model)) {
    models::load_adapter(model, *adapter, adapter_folder(folder));
  } else {
    const auto saved = models::load_model(folder, load);
    const c10::AutoGradMode no_grad(false);
    for (nn::Entry& entry : model.parameters().entries()) {
      if (!entry.trainable || entry.adapter) continue;  // not of the model's files: a method's own
      const nn::Entry* other = saved->parameters().find(entry.path);
      if (!other || other->shard.sizes() != entry.shard.sizes())
        refuse(folder.string(), "its model has not the parameters of this run's; see " + entry.path,
               "name another save_directory, or set resume_if_possible: false");
      entry.shard.copy_(other->shard);
    }
  }
  for (nn::Entry& entry : model.parameters().entries()) entry.written();
}

void read_optimizer(const fs::path& folder, const models::LoadOptions& load, models::Model& model, Optimizer& optimizer,
                    const std::function<void(const weights::SafetensorsFile&)>& restore) {
  const fs::path path = optimizer_file(folder);
  const auto file = path.empty() ? nullptr : weights::SafetensorsFile::open(path);
  if (!file)
    log::warning(folder.string(),
                 " has no optimizer state (save_optimizer_state: false); training continues with fresh moments");
  const bool masters = file && !optimizer.slots().empty() && file->has("master." + optimizer.slots()[0].entry->path);
  if (trained_adapter(model) || !masters) load_weights(folder, load, model);
  for (Optimizer::Slot& slot : optimizer.slots()) {
    if (!file) break;
    if (masters) copy_into(slot.entry->shard, slot.entry, *file, "master." + slot.entry->path);
    for (const auto& [name, state] : slot.states)
      copy_into(state, is_whole(slot, name, state) ? nullptr : slot.entry, *file, str(name, ".", slot.entry->path));
  }
  if (file && restore) restore(*file);
  for (nn::Entry& entry : model.parameters().entries()) entry.written();
}

}  // namespace easydel::train
