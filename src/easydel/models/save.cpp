// From a model to a folder that transformers loads.
#include <set>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/model.h"
#include "easydel/tensor/dtype.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

at::ScalarType type_to_save(const Model& model, const std::string& word) {
  if (word == "auto" || word.empty()) return model.file_type();
  const auto found = weights::dtype_of_config(word);
  if (!found || !at::isFloatingType(tensor::scalar_type(*found)))
    refuse("dtype", str("'", word, "' is no number type of weights"), "known: auto, fp32, bf16, fp16");
  return tensor::scalar_type(*found);
}

std::string config_name(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    case at::kDouble: return "float64";
    default: return "float32";
  }
}

}  // namespace

void save_model(const Model& model, const std::filesystem::path& folder, const std::string& dtype,
                uint64_t max_shard_bytes) {
  const at::ScalarType type = type_to_save(model, dtype);
  const bool first = model.team().first();
  std::vector<weights::OutTensor> tensors;
  for (const nn::Entry& entry : model.parameters().entries()) {
    const at::NoGradGuard no_gradient;
    // Gathering is collective; only the first rank keeps what came together.
    const Tensor whole = entry.team->whole(entry.shard.detach(), entry.layout);
    if (!first) continue;
    const bool turned = entry.source.step == nn::SourceStep::transpose;
    tensors.push_back(tensor::to_file(entry.path, turned ? whole.t() : whole, type));
  }
  if (!first) return;
  files::make_directories(folder);
  weights::write_folder(folder, tensors, max_shard_bytes);
  Value config = model.config();
  // The one spelling of the number type that the file already has.
  config.set(config.find("torch_dtype") && !config.find("dtype") ? "torch_dtype" : "dtype", Value::text(config_name(type)));
  files::write(folder / "config.json", to_json(config, 2) + "\n");
  const auto generation = model.folder() / "generation_config.json";
  if (!model.folder().empty() && std::filesystem::is_regular_file(generation) &&
      !(std::filesystem::exists(folder / "generation_config.json") &&
        std::filesystem::equivalent(generation, folder / "generation_config.json")))
    files::write(folder / "generation_config.json", files::read(generation));
}

}  // namespace easydel::models
