// From a folder to a model: reads config.json, picks the family, fills its parameters from files or from random values,
// and names everything that does not fit at once.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/models/family.h"
#include "easydel/nn/placement.h"
#include "easydel/nn/scope.h"
#include "easydel/ops/attention_backends.h"
#include "easydel/tensor/device.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/mapped.h"
#include "easydel/tensor/mxfp4.h"
#include "easydel/tensor/random.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return str("[", join(sizes, ", "), "]");
}

// The names of a checkpoint as the family's own: old files leave the base's prefix out, and hold buffers beside the
// weights.
class Checkpoint {
 public:
  Checkpoint(weights::Folder folder, const Family& family) : folder_(std::move(folder)), family_(family) {
    for (const std::string& name : folder_.names()) unused_.insert(name);
  }

  // A parameter's tensor: its name as this checkpoint spells it, and in the file, where it may lack the base's prefix.
  struct Found {
    std::string spelled, file;  // empty: there is none
  };
  Found find(const std::string& name) const {
    std::vector<std::string> candidates = {name};
    for (const auto& [ours, other] : family_.spellings)
      for (size_t i = 0, known = candidates.size(); i < known; ++i)
        if (const size_t at = candidates[i].find(ours); at != std::string::npos)
          candidates.push_back(std::string(candidates[i]).replace(at, ours.size(), other));
    const std::string prefix = str(family_.base_prefix, ".");
    for (const std::string& candidate : candidates) {
      if (folder_.has(candidate)) return {candidate, candidate};
      if (candidate.starts_with(prefix) && folder_.has(candidate.substr(prefix.size())))
        return {candidate, candidate.substr(prefix.size())};
    }
    return {};
  }
  // The first of `sources` whose tensors are all there, with their names in the file; nothing: none is.
  std::optional<nn::Source> choose(const std::vector<nn::Source>& sources) const {
    for (nn::Source source : sources) {
      bool all = true;
      for (std::string& name : source.tensors) {
        Found found = find(name);
        if (!(all = !found.file.empty())) break;
        name = std::move(found.spelled);
        source.found.push_back(std::move(found.file));
      }
      if (all) return source;
    }
    return std::nullopt;
  }
  Tensor take(const std::string& file_name) {
    unused_.erase(file_name);
    return tensor::from_view(folder_.at(file_name));
  }
  void leave(const std::string& file_name) { unused_.erase(file_name); }

  // What nobody asked for and nobody may ignore.
  std::vector<std::string> unexpected() const {
    std::vector<std::string> out;
    for (const std::string& name : unused_) {
      bool ignored = false;
      for (const std::string_view ending : family_.ignored) ignored = ignored || name.ends_with(ending);
      if (!ignored) out.push_back(name);
    }
    return out;
  }

  at::ScalarType type() const {
    for (const std::string& name : folder_.names()) {
      const at::ScalarType type = tensor::scalar_type(folder_.at(name).dtype);
      if (at::isFloatingType(type)) return type;
    }
    return at::kFloat;
  }

 private:
  weights::Folder folder_;
  const Family& family_;
  std::set<std::string> unused_;
};

at::ScalarType number_type(const std::string& word, at::ScalarType otherwise, const char* key) {
  if (word == "auto" || word.empty()) return otherwise;
  const auto found = weights::dtype_of_config(word);
  if (!found || !at::isFloatingType(tensor::scalar_type(*found)))
    refuse(key, str("'", word, "' is no number type"), "known: auto, fp32, bf16, fp16");
  return tensor::scalar_type(*found);
}

// This rank's slice of an entry's values, or of one index of its dimension 0.
Tensor slice_of(const Tensor& values, const nn::Entry& entry) {
  Tensor part = values;
  const auto dropped = int64_t(entry.shape.size()) - values.dim();
  for (int64_t d = 0; d < values.dim(); ++d) {
    const auto at = size_t(d + dropped);
    if (entry.slice.size[at] != entry.shape[at]) part = part.narrow(d, entry.slice.begin[at], entry.slice.size[at]);
  }
  return part;
}

// What to say of a parameter that no source has: the first tensor that is not there, and how many more.
std::string missing_name(const Checkpoint& checkpoint, const nn::Source& source) {
  std::vector<std::string> gone;
  for (const std::string& name : source.tensors)
    if (checkpoint.find(name).file.empty()) gone.push_back(name);
  return gone.size() > 1 ? str(gone.front(), " (and ", gone.size() - 1, " more of its kind)") : gone.front();
}

// How the number types of a model follow from the options and from what the file holds.
struct Types {
  at::ScalarType compute, shard;
};

Types types_of(const LoadOptions& options, at::ScalarType file, at::Device device) {
  // fp16 is for storage on a CPU; what has no products of its own (fp8, fp64) is computed in fp32 as well.
  const bool half_here = file == at::kHalf && device.is_cpu();
  const at::ScalarType usual = half_here || (file != at::kBFloat16 && file != at::kHalf) ? at::kFloat : file;
  Types types{};
  types.compute = number_type(options.dtype, usual, "dtype");
  if (types.compute == at::kHalf && device.is_cpu())
    refuse("dtype", "fp16 is for storage only on a CPU", "use bf16 or fp32");
  if (types.compute != at::kFloat && types.compute != at::kBFloat16 && types.compute != at::kHalf)
    refuse("dtype", str("'", options.dtype, "' is no number type of a computation"), "known: auto, fp32, bf16, fp16");
  types.shard = number_type(options.param_dtype, types.compute, "param_dtype");
  if (options.training) types.shard = at::kFloat;
  return types;
}

void check_mesh(const mesh::Mesh& mesh, at::Device device) {
  for (const char* axis : {"ep", "sp"})
    if (mesh.size(axis) > 1)
      refuse("sharding.axis_dims", str("axis ", axis, " has ", mesh.size(axis), " ranks: that is not built yet"),
             str("set ", axis, " to 1; dp, fsdp and tp are built"));
  if (mesh.ranks() > 1 && !device.is_cpu())
    refuse("loader.device", "a model on several ranks of a GPU is not built yet", "run one rank, or set it to cpu");
}

}  // namespace

struct Loader {
  static std::shared_ptr<Model> load(const fs::path& folder, const LoadOptions& options);
  static std::shared_ptr<Model> copy(const Model& model);
};

std::string Model::model_type() const {
  const Value* type = config_.find("model_type");
  return type && type->as_string() ? *type->as_string() : std::string();
}

std::shared_ptr<Model> Loader::load(const fs::path& folder, const LoadOptions& options) {
  const fs::path config_path = folder / "config.json";
  if (!fs::is_directory(folder)) refuse(folder.string(), "there is no such model folder");
  if (!fs::is_regular_file(config_path))
    refuse(folder.string(), "no config.json in this folder", "a model folder holds config.json and its weights");
  Value config = parse_file(config_path);
  if (!config.is_map()) refuse(config_path.string(), "is no mapping");
  for (const auto& [key, value] : options.overrides.entries) config.set(key, value);

  const ConfigReader reader(config, config_path.string());
  const Family& family = family_of(reader);
  ops::check_attention_name(options.attention, "attention");
  const at::Device device = tensor::choose_device(options.device);

  std::unique_ptr<Checkpoint> checkpoint;
  at::ScalarType file_type = at::kFloat;
  if (weights::Folder::has_weights(folder)) {
    checkpoint = std::make_unique<Checkpoint>(weights::Folder::open(folder), family);
    file_type = checkpoint->type();
  } else {
    file_type = number_type(reader.text("dtype", reader.text("torch_dtype", "float32")), at::kFloat, "dtype");
    log::info(folder.string(), ": no weights; starting from random values, seed ", options.seed);
  }
  const Types types = types_of(options, file_type, device);

  std::vector<std::string> missing, misshapen;
  auto table = std::make_unique<nn::ParameterTable>();
  nn::Building building{*table, types.compute, options.team, {}, {}, {}, {}};
  building.moe_method = ops::moe_method_of(options.moe_method, "moe_method");
  check_mesh(options.team->mesh(), device);
  const mesh::PartitionRules rules(options.partition_rules, options.team->mesh());
  int64_t dropped = 0;
  building.place = [&](nn::Entry& entry) { nn::place(entry, options.team, rules, dropped); };
  const bool tied = reader.boolean("tie_word_embeddings", family.tied_by_default);
  // From the file into this rank's shard, a tensor at a time.
  const auto take = [&](nn::Entry& entry) {
    nn::Source& source = entry.source;
    const auto shape = source.file_shape(entry.shape);
    const int64_t first = source.stacked ? entry.slice.begin[0] : 0;
    const int64_t count = source.stacked ? entry.slice.size[0] : 1;
    for (size_t i = 0; i < source.found.size(); ++i) {
      const std::string& name = source.found[i];
      if (source.packing == nn::Packing::mxfp4 && i > 0) break;  // its scales went with its blocks
      Tensor values = source.packing == nn::Packing::mxfp4 ? tensor::mxfp4_values(checkpoint->take(name), checkpoint->take(source.found[1]))
                                                           : checkpoint->take(name);
      source.found_type = values.scalar_type();
      if (values.sizes() != at::IntArrayRef(shape)) {
        misshapen.push_back(str(name, ": the file has ", shape_text(values.sizes()), ", config.json asks for ",
                                shape_text(shape)));
        continue;
      }
      values = slice_of(source.part_of(values), entry);
      if (!source.stacked)
        entry.shard.copy_(values);
      else if (const int64_t at = int64_t(i) - first; at >= 0 && at < count)
        entry.shard.select(0, at).copy_(values);
    }
  };
  building.fill = [&](nn::Entry& entry, const nn::Initial& initial, const std::vector<nn::Source>& sources) {
    // What is computed exactly is kept so.
    const at::ScalarType shard_type = entry.compute != types.compute ? entry.compute : types.shard;
    const auto shard_options = at::TensorOptions().dtype(shard_type).device(device);
    if (!checkpoint) {
      Tensor values = at::empty(entry.slice.size, at::TensorOptions().dtype(shard_type));
      if (initial.kind == nn::Initial::Kind::normal)
        tensor::fill_normal(values, tensor::key_of(options.seed, "initial/" + entry.path), initial.deviation, entry.shape,
                            entry.slice.begin);
      else
        values.fill_(initial.value);
      if (const int64_t row = initial.zero_row - (entry.shape.empty() ? 0 : entry.slice.begin[0]);
          initial.zero_row >= 0 && row >= 0 && row < values.size(0))
        values[row].zero_();
      entry.shard = values.to(device);
    } else {
      std::optional<nn::Source> source = checkpoint->choose(sources);
      const bool shared = tied && entry.role == nn::Role::embedding;
      // A tied checkpoint may hold the shared values under the head's name alone.
      if (!source && shared) {
        nn::Source head;
        head.tensors = {"lm_head.weight"};
        source = checkpoint->choose({head});
        if (source) source->tensors = sources.front().tensors;
      }
      if (shared) checkpoint->leave("lm_head.weight");
      entry.shard = at::empty(entry.slice.size, shard_options);
      if (source) {
        entry.source = std::move(*source);
        take(entry);
        // What was packed is from now on what it would be without.
        if (entry.source.packing != nn::Packing::none) {
          entry.source = sources.front();
          entry.source.found = entry.source.tensors;
        }
      } else {
        missing.push_back(missing_name(*checkpoint, sources.front()));
      }
    }
    if (options.training) entry.shard.set_requires_grad(entry.trainable);
  };

  std::shared_ptr<Model> model = family.build(reader, building);
  if (dropped > 0 && options.team->first())
    log::warning(dropped, " dimensions of parameters stay whole: the mesh (", options.team->mesh().describe(),
                 ") does not divide them");
  if (checkpoint) {
    const auto unexpected = checkpoint->unexpected();
    std::string problems;
    const auto list = [&](const char* title, const std::vector<std::string>& names) {
      if (names.empty()) return;
      problems += str(problems.empty() ? "" : "\n    ", title, " (", names.size(), "):");
      for (size_t i = 0; i < names.size() && i < 20; ++i) problems += "\n      " + names[i];
      if (names.size() > 20) problems += str("\n      ... and ", names.size() - 20, " more");
    };
    list("missing", missing);
    list("wrong shape", misshapen);
    list("not in the model", unexpected);
    if (!problems.empty()) refuse(folder.string(), "the weights do not fit config.json", problems);
  }
  model->parameters_ = std::move(table);
  model->config_ = std::move(config);
  model->folder_ = folder;
  model->compute_ = types.compute;
  model->file_type_ = file_type;
  model->device_ = device;
  model->attention_ = options.attention;
  model->moe_method_ = building.moe_method;
  model->team_ = options.team;
  return model;
}

std::shared_ptr<Model> Loader::copy(const Model& from) {
  auto table = std::make_unique<nn::ParameterTable>();
  nn::Building building{*table, from.compute_, from.team_, {}, {}, {}, from.moe_method_};
  building.fill = [&](nn::Entry& entry, const nn::Initial&, const std::vector<nn::Source>&) {
    const nn::Entry* source = from.parameters_->find(entry.path);
    check(source != nullptr, "copy: no parameter ", entry.path);
    entry.team = source->team;
    entry.slice = source->slice;
    entry.layout = source->layout;
    entry.source = source->source;
    entry.trainable = false;
    // Masters of another number type than the computation's are of no use to a frozen model.
    entry.shard = source->shard.detach().to(entry.compute, /*non_blocking=*/false, /*copy=*/true);
  };
  const ConfigReader reader(from.config_, (from.folder_ / "config.json").string());
  std::shared_ptr<Model> model = family_of(reader).build(reader, building);
  model->parameters_ = std::move(table);
  model->config_ = from.config_;
  model->folder_ = from.folder_;
  model->compute_ = from.compute_;
  model->file_type_ = from.file_type_;
  model->device_ = from.device_;
  model->attention_ = from.attention_;
  model->moe_method_ = from.moe_method_;
  model->team_ = from.team_;
  return model;
}

std::shared_ptr<Model> load_model(const fs::path& folder, const LoadOptions& options) {
  return Loader::load(folder, options);
}

std::shared_ptr<Model> copy_model(const Model& model) { return Loader::copy(model); }

}  // namespace easydel::models
