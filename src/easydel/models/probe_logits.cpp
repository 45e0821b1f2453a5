#include "easydel/models/probe_logits.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/models/file_tensors.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::models {
namespace {

struct Batch {
  Tensor ids, mask, labels;  // int64 [rows, T]; labels may be undefined
};

Tensor read(const weights::SafetensorsFile& file, const std::string& name, const Tensor& shaped_as = {}) {
  const Tensor tensor = tensor::from_view(file.at(name)).to(at::kLong);
  if (tensor.dim() != 2 || (shaped_as.defined() && tensor.sizes() != shaped_as.sizes()))
    refuse(file.path().string(), str(name, " must be [rows, tokens]", shaped_as.defined() ? " as the ids are" : ""));
  return tensor;
}

Batch read_batch(const weights::SafetensorsFile& file, const std::string& ids, const std::string& mask, bool with_labels) {
  Batch batch;
  batch.ids = read(file, ids);
  batch.mask = file.has(mask) ? read(file, mask, batch.ids) : at::full(batch.ids.sizes(), 1, batch.ids.options());
  if (with_labels && file.has("labels")) batch.labels = read(file, "labels", batch.ids);
  return batch;
}

// All rows behind one another, padding and all: positions are then those of a plain forward in transformers.
nn::Pass pass_over_rows(const Batch& batch, at::Device device) {
  const int64_t rows = batch.ids.size(0), length = batch.ids.size(1);
  std::vector<int64_t> begins;
  for (int64_t row = 0; row <= rows; ++row) begins.push_back(row * length);
  nn::Pass pass = nn::Pass::over(begins);
  // Padding behind the text is never seen by causal attention anyway; padding before or inside it must be hidden.
  const Tensor padded = batch.mask.eq(0);
  const Tensor before_text = padded.slice(1, 0, length - 1).logical_and(batch.mask.slice(1, 1, length).ne(0));
  if (length > 1 && before_text.any().item<bool>()) pass.stream().hidden = padded.flatten().to(device);
  return pass;
}

// Each prompt's tokens without padding, then the greedy continuation, all prompts in one batch.
Tensor generate(const Model& model, const Batch& prompts, int64_t max_new_tokens) {
  const at::NoGradGuard no_gradient;
  const int64_t count = prompts.ids.size(0);
  std::vector<Tensor> parts;
  std::vector<int64_t> slots, tokens;
  for (int64_t row = 0; row < count; ++row) {
    parts.push_back(prompts.ids[row].masked_select(prompts.mask[row].ne(0)));
    slots.push_back(row);
    tokens.push_back(parts.back().size(0));
    if (tokens.back() == 0) refuse("prompt_ids", str("prompt ", row, " is empty"));
  }
  auto cache = model.make_cache(count, prompts.ids.size(1) + max_new_tokens);
  std::vector<Tensor> texts = parts, made;
  for (int64_t step = 0; step < max_new_tokens; ++step) {
    nn::Pass pass = nn::Pass::next(*cache, slots, tokens);
    const Tensor hidden = model.forward({at::cat(parts).to(model.device())}, pass).hidden;
    std::vector<Tensor> rows;
    for (size_t i = 1; i < pass.stream().cu_seqlens.size(); ++i) rows.push_back(hidden[pass.stream().cu_seqlens[i] - 1]);
    made.push_back(model.head().logits(at::stack(rows)).argmax(1).to(at::kCPU));
    for (size_t i = 0; i < texts.size(); ++i) {
      const Tensor next = made.back()[int64_t(i)].unsqueeze(0);
      texts[i] = at::cat({texts[i], next});
      const bool outgrown = model.restart_length() > 0 && texts[i].size(0) == model.restart_length() + 1;
      if (outgrown) cache->truncate(slots[i], 0);
      parts[i] = outgrown ? texts[i] : next;
      tokens[i] = parts[i].size(0);
    }
  }
  return made.empty() ? at::empty({count, 0}, prompts.ids.options()) : at::stack(made, 1);
}

}  // namespace

void probe_logits(const std::filesystem::path& folder, const std::filesystem::path& inputs,
                  const std::filesystem::path& output, const ProbeOptions& options) {
  const auto file = weights::SafetensorsFile::open(inputs);
  LoadOptions load;
  load.dtype = options.dtype;
  load.attention = options.attention;
  load.device = options.device;
  load.training = options.gradients && file->has("labels");
  const auto model = load_model(folder, load);
  const at::Device device = model->device();

  std::vector<weights::OutTensor> out, traced;
  const auto give = [&](const std::string& name, const Tensor& value) {
    out.push_back(tensor::to_file(name, value, value.scalar_type()));
  };
  if (file->has("input_ids")) {
    const Batch batch = read_batch(*file, "input_ids", "attention_mask", true);
    const int64_t rows = batch.ids.size(0), length = batch.ids.size(1);
    const at::AutoGradMode gradients(load.training);
    nn::Pass pass = pass_over_rows(batch, device);
    std::map<std::string, Tensor> seen;
    if (!options.trace.empty())
      pass.capture = [&](std::string_view name, const Tensor& value) { seen[std::string(name)] = value.detach(); };
    const Tensor hidden = model->forward({batch.ids.flatten().to(device)}, pass).hidden;
    const auto by_row = [&](const Tensor& t) { return t.detach().to(at::kFloat).view({rows, length, -1}); };
    give("logits", by_row(model->head().logits(hidden.detach())));
    give("last_hidden_state", by_row(hidden));
    for (const auto& [name, value] : seen)
      traced.push_back(tensor::to_file(name, value.view({rows, length, -1}), value.scalar_type()));
    if (batch.labels.defined()) {
      const Tensor shifted = at::full(batch.labels.sizes(), -100, batch.labels.options());
      shifted.slice(1, 0, length - 1).copy_(batch.labels.slice(1, 1, length));
      const Tensor labels = shifted.flatten(), at_labels = labels.ne(-100).nonzero().squeeze(1);
      const Tensor known = labels.index_select(0, at_labels).to(device);
      const Tensor loss = -model->head().score(hidden.index_select(0, at_labels.to(device)), known).logps.mean();
      give("loss", loss.detach().reshape({1}));
      if (load.training) {
        loss.backward();
        double squares = 0;
        for (const FileTensor& file : file_tensors(model->parameters())) {
          double of_file = 0;
          for (const FilePart& part : file.parts) {
            Tensor gradient = part.entry->shard.grad();
            if (!gradient.defined()) continue;
            if (part.index >= 0) gradient = gradient.select(0, part.index);
            const double norm = at::linalg_vector_norm(gradient.to(at::kDouble)).item<double>();
            of_file += norm * norm;
          }
          squares += of_file;
          give("grad_norm." + file.found, at::full({1}, std::sqrt(of_file), at::TensorOptions().dtype(at::kFloat)));
        }
        give("grad_norm_total", at::full({1}, std::sqrt(squares), at::TensorOptions().dtype(at::kFloat)));
      }
    }
  }
  if (file->has("max_new_tokens") && file->has("prompt_ids")) {
    const int64_t count = tensor::from_view(file->at("max_new_tokens")).to(at::kLong).flatten()[0].item<int64_t>();
    give("generated", generate(*model, read_batch(*file, "prompt_ids", "prompt_mask", false), count).to(at::kCPU));
  }
  if (!options.trace.empty()) {
    const bool is_folder = std::filesystem::is_directory(options.trace) || !options.trace.has_extension();
    if (is_folder) files::make_directories(options.trace);
    weights::write_safetensors(is_folder ? options.trace / "trace.safetensors" : options.trace, traced);
  }
  weights::write_safetensors(output, out);
}

}  // namespace easydel::models
