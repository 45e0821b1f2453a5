// From a folder to a model: reads config.json, selects the family, fills its parameters from files (checkpoint.h) or
// with random values.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "easydel/base/bar.h"
#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/mesh/built_axes.h"
#include "easydel/models/adapter.h"
#include "easydel/models/checkpoint.h"
#include "easydel/models/common_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/heads.h"
#include "easydel/models/initial_values.h"
#include "easydel/models/kept_codes.h"
#include "easydel/models/load_types.h"
#include "easydel/models/parameter_plan.h"
#include "easydel/models/parts_config.h"
#include "easydel/nn/adapter_slots.h"
#include "easydel/nn/placement.h"
#include "easydel/nn/scope.h"
#include "easydel/ops/attention_backends.h"
#include "easydel/tensor/dtype.h"
#include "easydel/weights/folder.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

// The dtypes of a model, from the options and the file.
struct Types {
  at::ScalarType compute, shard;
};

Types types_of(const LoadOptions& options, at::ScalarType file, at::Device device) {
  // fp16 is for storage on a CPU; dtypes without products (fp8, fp64) are computed in fp32, too.
  const bool half_here = file == at::kHalf && device.is_cpu();
  const at::ScalarType usual = half_here || (file != at::kBFloat16 && file != at::kHalf) ? at::kFloat : file;
  Types types{};
  const std::string where = options.key_prefix + "dtype";
  types.compute = scalar_type_of(options.dtype, usual, where);
  if (types.compute == at::kHalf && device.is_cpu())
    refuse(where, "fp16 is for storage only on a CPU", "use bf16 or fp32");
  if (types.compute != at::kFloat && types.compute != at::kBFloat16 && types.compute != at::kHalf)
    refuse(where, str("'", config::word_of(options.dtype), "' is not a dtype of the computation"),
           "known: auto, fp32, bf16, fp16");
  types.shard = scalar_type_of(options.param_dtype, types.compute, options.key_prefix + "param_dtype");
  if (options.training) types.shard = at::kFloat;
  return types;
}

void check_mesh(const mesh::Mesh& mesh, at::Device device, const std::string& where) {
  mesh::check_built_axes(mesh);
  if (mesh.ranks() > 1 && !device.is_cpu())
    refuse(where, "a model on several ranks of a GPU is not built yet", "run one rank, or set it to cpu");
}

void check_quantization(const nn::Quantization& wanted, bool training, const mesh::Mesh& mesh, at::Device device) {
  const auto not_built = [&](const char* what, const char* remedy) {
    refuse(wanted.where, str(what, " is not built yet"), remedy);
  };
  if (training)
    refuse(wanted.where, "codes are not trained",
           "train an adapter over them: the section lora, LoadOptions::adapters");
  for (const char* const axis : {"tp", "ep"})
    if (mesh.size(axis) > 1)
      not_built(axis == std::string_view("tp") ? "a quantized model along tp" : "a quantized model along ep",
                "share the ranks out along dp and fsdp (sharding.axis_dims)");
  if (!device.is_cpu()) not_built("a quantized model on a GPU", "set loader.device to cpu");
  if (wanted.of_codes && mesh.ranks() > 1) not_built("converting codes on several ranks", "run one rank");
}

// A folder without the values of its weights.
struct Opened {
  Value config;  // with the overrides
  Where where;
  const Family* family = nullptr;
  std::unique_ptr<Checkpoint> checkpoint;  // null: the model starts with random values
  const FamilyPart* part = nullptr;        // the part of the folder's model that is loaded; null: it has only one
  std::shared_ptr<WholeModel> whole;       // needed to save the part
  at::Device device = at::kCPU;
  at::ScalarType file_type = at::kFloat;
  Types types = {};

  ConfigReader reader() const { return {config, where}; }
};

// If config.json names another task than the requested one, it is changed to that.
bool change_task(Value& config, const Where& where, Task wanted) {
  Value type = Value::map();
  if (const Value* const given = config.find("model_type")) type.set("model_type", *given);
  const FamilyConfig& family = family_config_of(type, where);
  const Value* const given = config.find("architectures");
  const bool named = given && given->is_list() && !given->items.empty();
  if (named && task_of(family, given->items.front().as_string().value_or("")) == wanted) return false;
  Value list = Value::list();
  list.items.push_back(Value::text(architecture_of(family, wanted)));
  config.set("architectures", list);
  return true;
}

// The folder's configuration with the overrides; for a model that also sees or hears, that of its text part.
void read_configuration(const fs::path& folder, const Value& overrides, Opened& out) {
  weights::ConfigFile config = weights::read_config(folder);
  out.where = std::move(config.where);
  out.config = part_config(config.document, out.where, PartRole::text);
  for (const auto& [key, value] : overrides.entries) out.config.set(key, value);
  check_common_keys(out.config, out.where);
  const FamilyConfig* const whole = family_of_parts(config.document);
  if (!whole) return;
  out.part = part_of(*whole, PartRole::text);
  out.whole = std::make_shared<WholeModel>();
  out.whole->config = std::move(config.document);
  Value text = *out.whole->config.find(out.part->config_key);
  for (const auto& [key, value] : overrides.entries) text.set(key, value);
  out.whole->config.set(std::string(out.part->config_key), std::move(text));
}

// Some checkpoints contain a separate head although config.json says that it is tied.
bool untie_what_differs(const fs::path& folder, Opened& out) {
  Value untied = out.config;
  untied.set("tie_word_embeddings", Value::boolean(false));
  if (!out.checkpoint->unties(*plan_parameters(untied, out.where))) return false;
  log::warning(folder.string(),
               ": tie_word_embeddings is true, but lm_head and the embedding differ; they are not tied");
  out.config = std::move(untied);
  if (out.whole) out.whole->config.set("tie_word_embeddings", Value::boolean(false));
  return true;
}

Opened open(const fs::path& folder, const LoadOptions& options, const mesh::Mesh& mesh) {
  Opened out;
  read_configuration(folder, options.overrides, out);
  const bool changed = options.task && change_task(out.config, out.where, *options.task);
  if (changed && options.labels) set_labels(out.config, *options.labels);
  const int64_t tokens = read_vocabulary(out.config),
                needed = needed_vocabulary(options.adapters, out.config, out.where);
  if (needed > tokens) {
    out.config.set("vocab_size", Value::integer(needed));
    if (out.whole) out.whole->config.find(out.part->config_key)->set("vocab_size", Value::integer(needed));
  }
  const ConfigReader reader = out.reader();
  if (const int64_t found = options.labels ? read_labels(reader) : 0; options.labels && found != *options.labels)
    refuse(folder.string(),
           str("its head has ", counted(found, "label"), ", and ", *options.labels,
               *options.labels == 1 ? " is needed" : " are needed"),
           "give a model with such a head, or one without a classification head, which gets a new one");
  out.family = &family_of(reader);
  ops::check_attention(options.attention, "attention");
  const std::string device_key = options.key_prefix + "device";
  out.device = device_of(options.device, device_key);
  check_mesh(mesh, out.device, device_key);
  if (options.quantization)
    check_quantization(*options.quantization, options.training && options.adapters.empty(), mesh, out.device);
  if (weights::Folder::has_weights(folder)) {
    const bool tied = reader.boolean("tie_word_embeddings", out.family->tied_by_default);
    const nn::HeadPlan head = head_plan(reader, *out.family);
    const bool bare = !head.language && !head.classes;  // its pooling layer is not always saved
    const auto hold = [&](bool one) {
      out.checkpoint = std::make_unique<Checkpoint>(quant::open_coded(folder, out.config, out.where), *out.family, one,
                                                    head.stack, changed || bare, out.part);
      if (needed > tokens) out.checkpoint->grow(tokens, needed);
    };
    hold(tied);
    check_codes(folder, out.checkpoint->folder(), options);
    if (tied && head.language && untie_what_differs(folder, out)) hold(false);
    out.file_type = out.checkpoint->type();
    if (out.whole) {
      log::info(folder.string(), ": the text part of ", out.whole->config.find("model_type")->scalar, "; ",
                out.checkpoint->left_alone().size(), " tensors of its other parts are ignored");
      out.whole->folder = out.checkpoint->folder().folder();
      out.whole->left_alone = out.checkpoint->left_alone();
    }
  } else {
    if (options.quantization && options.quantization->of_codes) refuse_conversion(folder, *options.quantization);
    out.file_type = tensor::scalar_type(weights::dtype_of_weights(out.config));
  }
  // With another head, or without the values of the other parts, it is a text model from now on.
  if (changed || !out.checkpoint) out.whole.reset();
  out.types = types_of(options, out.file_type, out.device);
  return out;
}

// Shows the progress of a long load: a bar on a terminal, otherwise a line now and then.
class Progress {
 public:
  Progress(const std::string& what, const Checkpoint* checkpoint, bool told)
      : what_(what), total_(checkpoint && told ? checkpoint->elements() : 0), bar_("loading " + what) {}
  void add(int64_t elements) {
    done_ += elements;
    const auto now = Clock::now();
    if (total_ == 0 || now < next_) return;
    const double share = std::min(1.0, double(done_) / double(total_));
    next_ = now + (bar_.on_terminal() ? std::chrono::milliseconds(100) : std::chrono::milliseconds(2000));
    if (bar_.on_terminal())
      bar_.draw(share);
    else
      log::info(what_, ": loading, ", int64_t(100 * share), " %");
  }

 private:
  std::string what_;
  int64_t total_, done_ = 0;
  TerminalBar bar_;
  Clock::time_point next_ =
      Clock::now() + (bar_.on_terminal() ? std::chrono::milliseconds(500) : std::chrono::milliseconds(2000));
};

// Absurd sizes are reported as such, not as memory that ran out.
void check_size(const Where& where, const nn::Entry& entry, at::ScalarType type) {
  double bytes = double(c10::elementSize(type));
  for (const int64_t size : entry.slice.size) bytes *= double(size);
  const double memory = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    refuse(where, str(entry.path, " of ", shape_text(entry.shape), " alone would be larger than this machine's memory"),
           "is one of the sizes a mistake?");
}

// Whether an entry of a checkpoint in codes may keep them on this mesh: its rows are whole, and ranks have their own
// experts along fsdp, too, which products of codes know nothing of. Looking rows up would gather all of them.
bool keeps_codes(const mesh::Mesh& mesh, const nn::Entry& entry) {
  const bool linear = entry.shape.size() == 2 && entry.role != nn::Role::embedding;
  return mesh.size("tp") == 1 && mesh.size("ep") == 1 && (linear || mesh.ranks() == 1);
}

// Policies for the model's weights that the options request.
struct Policies {
  std::shared_ptr<KeptCodes> kept;           // null: codes of the checkpoint are decoded
  std::shared_ptr<nn::Quantizer> quantizer;  // null: there is none
  std::vector<std::shared_ptr<Adapter>> adapters;
  std::shared_ptr<nn::AdapterSlots> slots;  // null: the model has adapters, or is only read

  // Codes stay codes where kernels can multiply by them, and where adapters are merged into them one by one.
  Policies(const LoadOptions& options, nn::Building& building, at::Device device = at::kCPU) {
    const bool only_read = options.keep_file_types && options.adapters.empty();
    if (options.quantization) quantizer = std::make_shared<nn::Quantizer>(*options.quantization);
    const mesh::Mesh& mesh = options.team->mesh();
    if (device.is_cpu() && mesh.size("tp") == 1 && mesh.size("ep") == 1 && !only_read) {
      const bool converts = quantizer && options.quantization->of_codes;
      kept = std::make_shared<KeptCodes>(quantizer && !converts, converts ? quantizer.get() : nullptr);
      building.weight_policies.push_back(kept);
    }
    if (quantizer) building.weight_policies.push_back(quantizer);
    for (const AdapterOptions& each : options.adapters) {
      adapters.push_back(std::make_shared<Adapter>(each));
      building.weight_policies.push_back(adapters.back());
    }
    if (options.weight_policy) building.weight_policies.push_back(options.weight_policy);
    if (!adapters.empty() || options.keep_file_types) return;
    slots = std::make_shared<nn::AdapterSlots>();
    building.weight_policies.push_back(slots);
  }
  // The adapter that an entry belongs to; null: none of these.
  Adapter* owner(const nn::Entry& entry) const {
    const auto found = std::ranges::find_if(adapters, [&](const auto& adapter) { return adapter->owns(entry); });
    return found == adapters.end() ? nullptr : found->get();
  }
  void finish() const {
    if (quantizer) quantizer->refuse_none();
    for (const auto& adapter : adapters) adapter->finish();
  }
};

// Whether the parameter is trainable with these options.
bool trains(const LoadOptions& options, const Policies& policies, const nn::Entry& entry) {
  if (!options.training || !entry.trainable) return false;
  if (policies.adapters.empty()) return options.trainable.contains(entry.path, entry.unit);
  return policies.owner(entry) ||
         std::ranges::any_of(policies.adapters, [&](const auto& adapter) { return adapter->learns(entry); });
}

// Whether a parameter that is not trained keeps the dtype of its file while others are trained. Norms and biases are
// small, and are read in fp32 then.
bool keeps_own_type(const nn::Entry& entry) {
  return (entry.role == nn::Role::weight || entry.role == nn::Role::embedding) && !entry.router;
}

}  // namespace

struct Loader {
  static std::shared_ptr<Model> load(const fs::path& folder, const LoadOptions& options);
};

std::string Model::model_type() const {
  const Value* type = config_.find("model_type");
  return type && type->as_string() ? *type->as_string() : std::string();
}

Task Model::task() const { return task_of(config_, family_config_of(config_, FilePlace{folder_.string()})); }

std::shared_ptr<Model> Loader::load(const fs::path& folder, const LoadOptions& options) {
  Opened opened = open(folder, options, options.team->mesh());
  if (!opened.checkpoint) log::info(folder.string(), ": no weights; starting from random values, seed ", options.seed);
  auto table = std::make_unique<nn::ParameterTable>();
  nn::Building building{*table, opened.types.compute, options.team, {}, {}, {}, {}, {}};
  building.moe_method = options.moe_method;
  const mesh::PartitionRules rules(options.partition_rules, options.team->mesh());
  int64_t dropped = 0;
  building.place = [&](nn::Entry& entry) { nn::place(entry, options.team, rules, dropped); };
  Progress progress(folder.string(), opened.checkpoint.get(), options.team->first());
  const Policies policies(options, building, opened.device);
  building.fill = [&](nn::Entry& entry, const nn::Initial& initial, const std::vector<nn::TensorSource>& sources) {
    // Parameters with an exact compute dtype are stored in it.
    const at::ScalarType shard_type = entry.compute != opened.types.compute ? entry.compute : opened.types.shard;
    entry.trainable = trains(options, policies, entry);
    if (Adapter* const adapter = policies.owner(entry)) {
      adapter->fill(entry, [&] { return initial_values(entry, initial, adapter->options().seed, at::kFloat); });
      entry.shard = entry.shard.to(opened.device);
    } else if (entry.adapter) {
      entry.shard = initial_values(entry, initial, options.seed, shard_type).to(opened.device);
    } else if (opened.checkpoint && !opened.checkpoint->starts(entry, sources)) {
      const auto shard_options = at::TensorOptions().dtype(shard_type).device(opened.device);
      opened.checkpoint->fill(
          entry, sources, shard_options, !entry.trainable,
          options.keep_file_types || (options.training && !entry.trainable && keeps_own_type(entry)),
          keeps_codes(options.team->mesh(), entry) ? policies.kept.get() : nullptr);
      if (entry.shard.defined()) {
        for (const auto& each : policies.adapters) each->fill_base(entry);
        progress.add(entry.elements());
      }
    } else {
      if (opened.checkpoint)
        log::warning(folder.string(), ": no ", entry.path, "; it starts from random values, seed ", options.seed);
      // What is not trained has no master here either.
      const bool own =
          options.training && !entry.trainable && keeps_own_type(entry) && opened.file_type == at::kBFloat16;
      const at::ScalarType type = own ? at::kBFloat16 : shard_type;
      check_size(opened.where, entry, type);
      entry.shard = initial_values(entry, initial, options.seed, type).to(opened.device);
    }
    if (!entry.adapter)
      for (const auto& each : policies.adapters) each->start_base(entry);
    if (entry.shard.defined()) entry.shard.set_requires_grad(entry.trainable);
  };

  std::shared_ptr<Model> model = build_model(*opened.family, opened.reader(), building);
  policies.finish();
  if (policies.quantizer) log::info(folder.string(), ": ", policies.quantizer->told());
  nn::check_cache_format(options.cache_format, model->cache_layers(), opened.device);
  if (dropped > 0 && options.team->first())
    log::warning(dropped, " dimensions of parameters stay whole: the mesh (", options.team->mesh().describe(),
                 ") does not divide them");
  if (opened.checkpoint)
    opened.checkpoint->refuse_unfit(folder.string(), model->layers(), opened.config, opened.where.text());
  model->parameters_ = std::move(table);
  model->adapters_ = policies.adapters;
  model->adapter_slots_ = policies.slots;
  model->config_ = std::move(opened.config);
  model->folder_ = folder;
  model->compute_ = opened.types.compute;
  model->file_type_ = opened.file_type;
  model->device_ = opened.device;
  model->attention_ = options.attention;
  model->cache_format_ = options.cache_format;
  model->moe_method_ = building.moe_method;
  model->team_ = options.team;
  model->whole_ = std::move(opened.whole);
  return model;
}

std::shared_ptr<Model> load_model(const fs::path& folder, const LoadOptions& options) {
  return Loader::load(folder, options);
}

bool has_codes(const fs::path& folder) {
  Opened opened;
  read_configuration(folder, {}, opened);
  return weights::Folder::has_weights(folder) &&
         quant::open_coded(folder, opened.config, opened.where).only_codes() != nullptr;
}

CheckedModel check_model(const fs::path& folder, const LoadOptions& options, const mesh::Mesh& mesh) {
  const Opened opened = open(folder, options, mesh);
  nn::ParameterTable table;
  nn::Building building{table, opened.types.compute, options.team, {}, {}, {}, {}, {}};
  building.moe_method = options.moe_method;
  const mesh::PartitionRules rules(options.partition_rules, mesh);
  building.place = [&](nn::Entry& entry) { rules.find(entry.easydel_path, entry.shape.size()); };  // its spec must fit
  const Policies policies(options, building, opened.device);
  building.fill = [&](nn::Entry& entry, const nn::Initial&, const std::vector<nn::TensorSource>& sources) {
    if (Adapter* const adapter = policies.owner(entry))
      adapter->match(entry);
    else if (opened.checkpoint && !entry.adapter && !opened.checkpoint->starts(entry, sources))
      opened.checkpoint->match(entry, sources);
    if (!entry.adapter)
      for (const auto& adapter : policies.adapters) adapter->match_base(entry);
  };
  const std::unique_ptr<Model> model = build_model(*opened.family, opened.reader(), building);
  policies.finish();
  nn::check_cache_format(options.cache_format, model->cache_layers(), opened.device);
  if (opened.checkpoint)
    opened.checkpoint->refuse_unfit(folder.string(), model->layers(), opened.config, opened.where.text());
  CheckedModel out{task_of(opened.reader()), model->vocabulary()};
  for (nn::Entry& entry : table.entries()) {
    out.elements += entry.elements();
    entry.trainable = trains(options, policies, entry);
    if (entry.trainable) out.trainable += entry.elements();
    if (opened.checkpoint && policies.kept && !entry.adapter && keeps_codes(mesh, entry) && KeptCodes::can_keep(entry))
      if (const int64_t bytes = opened.checkpoint->coded_bytes(entry, *policies.kept); bytes > 0)
        out.coded += entry.elements(), out.coded_bytes += bytes;
    out.parameters.push_back({entry.path, entry.unit, entry.trainable});
  }
  out.layers = model->layers();
  return out;
}

}  // namespace easydel::models
