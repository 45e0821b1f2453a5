// Recorded cases of whole models: model_logits. Weights are a hash of their position; answers are compared with what
// transformers computed (EasyDeL's own logits differ from it and are ignored).
#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/model.h"
#include "easydel/probe/case_folder.h"
#include "easydel/probe/logits.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors_models.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/safetensors.h"

namespace easydel::probe {
namespace {

namespace fs = std::filesystem;

template <class T>
weights::OutTensor out_tensor(const std::string& name, weights::DType type, std::vector<int64_t> shape,
                              std::vector<T> values) {
  return {name, type, std::move(shape),
          [values = std::move(values)](const auto& sink) { sink(values.data(), values.size() * sizeof(T)); }};
}

// Writes a model with the case's configuration and the recording's weights to `folder`. A tensor's values follow from
// its index among the sorted names of transformers' state, which includes tied tensors.
void write_model(const VectorCase& vector, const fs::path& folder) {
  Value config = model_config_of(vector), classes = Value::list();
  classes.items.push_back(needed(vector, "class"));
  config.set("architectures", std::move(classes));
  const fs::path plain = folder / "plain";
  files::make_directories(plain);
  files::write(plain / "config.json", to_json(config));
  models::LoadOptions options;
  options.dtype = models::DTypeSetting::fp32;
  models::save_model(*models::load_model(plain, options), folder);
  const weights::Folder saved = weights::Folder::open(folder);
  std::set<std::string> state;
  for (const std::string& name : saved.names()) state.insert(name);
  const Value *const tied = vector.body.find("tied"), *const source = vector.body.find("tied_source");
  if (tied && tied->as_bool().value_or(false)) state.insert("lm_head.weight");
  std::vector<weights::OutTensor> out;
  for (const std::string& name : saved.names()) {
    const std::vector<int64_t> shape = saved.info(name).shape;
    const int64_t number = std::distance(state.begin(), state.find(name));
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const double middle = shape.size() == 1 && name.ends_with("weight") ? 1 : 0;
    auto values = std::vector<float>(size_t(count));
    for (int64_t i = 0; i < count; ++i) values[size_t(i)] = float(middle + 0.4 * hashed(i, number));
    out.push_back(out_tensor(name, weights::DType::f32, shape, std::move(values)));
  }
  if (source && !source->is_null() && !state.contains(source->scalar))
    refuse(vector.id, "no tensor is called '" + source->scalar + "'");
  weights::write_folder(folder, out, uint64_t(1) << 32);
}

// Logits [rows, tokens, vocabulary] of the file's tokens.
Tensor logits_of(const fs::path& folder, const std::vector<std::vector<int64_t>>& ids, bool masked) {
  const auto rows = int64_t(ids.size()), length = int64_t(ids.at(0).size());
  std::vector<int64_t> flat, mask(size_t(rows * length), 1);
  for (const auto& row : ids) flat.insert(flat.end(), row.begin(), row.end());
  // padding before the second row
  if (masked) mask[size_t(length)] = mask[size_t(length) + 1] = 0;
  const std::vector<weights::OutTensor> inputs = {
      out_tensor("input_ids", weights::DType::i64, {rows, length}, std::move(flat)),
      out_tensor("attention_mask", weights::DType::i64, {rows, length}, std::move(mask))};
  weights::write_safetensors(folder / "inputs.safetensors", inputs);
  LogitsOptions options;
  options.gradients = false;
  logits(folder, folder / "inputs.safetensors", folder / "logits.safetensors", options);
  const auto file = weights::SafetensorsFile::open(folder / "logits.safetensors");
  return tensor::from_view(file->at("logits")).clone();
}

Value flat_of(const Tensor& tensor) { return *shaped_of(tensor.contiguous()).find("data"); }

Value logits_answer(const VectorCase& vector, const VectorFile& file) {
  const CaseFolder folder;
  write_model(vector, folder.path());
  const Value* const meta = file.document.find("meta");
  if (!meta || !meta->find("input_ids")) refuse(vector.id, "the file's meta has no input_ids");
  std::vector<std::vector<int64_t>> ids;
  for (const Value& row : meta->find("input_ids")->items) ids.push_back(integers_of(row));
  Value out = Value::map();
  out.set("hf_logits", flat_of(logits_of(folder.path(), ids, false)));
  out.set("hf_logits_masked", flat_of(logits_of(folder.path(), ids, true)[1].slice(0, 2)));
  return out;
}

Value expected_logits(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (const char* key : {"hf_logits", "hf_logits_masked"}) out.set(key, needed(vector, key));
  return out;
}

}  // namespace

VectorKind model_logits_vectors() {
  return {
      .name = "model_logits", .answer = logits_answer, .relative = 1e-4, .absolute = 1e-4, .expected = expected_logits};
}

}  // namespace easydel::probe
