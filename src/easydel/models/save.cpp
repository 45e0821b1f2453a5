// Writes a model as a folder that transformers loads.
#include <ATen/ops/empty.h>

#include <map>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/file_tensors.h"
#include "easydel/models/load_types.h"
#include "easydel/models/model.h"
#include "easydel/models/parts_config.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

std::string config_name(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    case at::kDouble:
      return "float64";
    default:
      return "float32";
  }
}

// A file's tensor from the parameters that form it; it is assembled only while it is written.
weights::OutTensor written(const FileTensor& file, const std::map<const nn::Entry*, Tensor>& values,
                           at::ScalarType type) {
  const auto part = [&](const FilePart& one) {
    const Tensor& whole = values.at(one.entry);
    return one.index < 0 ? whole : whole.select(0, one.index);
  };
  if (file.is_parameter()) return tensor::to_file(file.name, part(file.parts.front()), type);
  std::vector<std::pair<nn::TensorSource, Tensor>> parts;
  for (const FilePart& one : file.parts) parts.emplace_back(one.entry->source, part(one));
  weights::OutTensor out{file.name, tensor::dtype_of(type), file.shape, {}};
  out.write = [parts = std::move(parts), name = file.name, shape = file.shape, type](const auto& sink) {
    const at::NoGradGuard no_gradient;
    const Tensor all = at::empty(shape, at::TensorOptions().dtype(type));
    for (const auto& [source, value] : parts) source.part_of(all).copy_(value);
    tensor::to_file(name, all, type).write(sink);
  };
  return out;
}

}  // namespace

void save_model(const Model& model, const std::filesystem::path& folder, DTypeSetting dtype, uint64_t max_shard_bytes) {
  const at::ScalarType type = scalar_type_of(dtype, model.file_type(), "dtype");
  const bool first = model.team().first();
  // Gathering is collective; only the first rank keeps the result.
  std::map<const nn::Entry*, Tensor> values;
  for (const nn::Entry& entry : model.parameters().entries()) {
    const at::NoGradGuard no_gradient;
    if (!entry.shard.defined())
      refuse(folder.string(), "saving a quantized model is not built yet", "load it without quantization to save it");
    const Tensor whole = entry.team->whole(entry.shard.detach(), entry.layout);
    if (first) values[&entry] = whole;
  }
  if (!first) return;
  files::make_directories(folder);
  std::vector<weights::OutTensor> tensors;
  const bool all_as_loaded = dtype == DTypeSetting::automatic;
  for (FileTensor& file : file_tensors(model.parameters())) {
    const bool as_loaded = all_as_loaded && file.type != at::ScalarType::Undefined;
    if (model.whole()) file.name = file.found;
    tensors.push_back(written(file, values, as_loaded ? file.type : type));
  }
  if (const WholeModel* const whole = model.whole())
    for (const std::string& name : whole->left_alone) {
      const Tensor value = tensor::from_view(whole->folder.at(name));
      tensors.push_back(
          tensor::to_file(name, value, all_as_loaded || !value.is_floating_point() ? value.scalar_type() : type));
    }
  weights::write_folder(folder, tensors, max_shard_bytes);
  Value config = model.whole() ? model.whole()->config : model.config();
  // Uses the spelling of the dtype key that the file already has.
  config.set(config.find("torch_dtype") && !config.find("dtype") ? "torch_dtype" : "dtype",
             Value::text(config_name(type)));
  // Packed weights were read as plain ones, and are written as such.
  std::erase_if(config.entries, [](const auto& entry) { return entry.first == "quantization_config"; });
  files::write(folder / "config.json", to_json(config, 2) + "\n");
  weights::keep_generation_config(model.folder(), folder);
}

}  // namespace easydel::models
