#include "easydel/probe/logits.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/models/adapter.h"
#include "easydel/models/config_reader.h"
#include "easydel/models/embedding.h"
#include "easydel/models/file_tensors.h"
#include "easydel/models/head_loss.h"
#include "easydel/models/router_loss.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"

namespace easydel::probe {
namespace {

struct Batch {
  Tensor ids, mask;            // int64 [rows, T]
  Tensor types;                // the same; undefined: none
  Tensor labels, first, last;  // as the task requires, or undefined
  bool answered() const { return labels.defined() || (first.defined() && last.defined()); }
};

Tensor read(const weights::SafetensorsFile& file, const std::string& name, const Tensor& shaped_as = {}) {
  const Tensor tensor = tensor::from_view(file.at(name)).to(at::kLong);
  if (tensor.dim() != 2 || (shaped_as.defined() && tensor.sizes() != shaped_as.sizes()))
    refuse(file.path().string(), str(name, " must be [rows, tokens]", shaped_as.defined() ? " as the ids are" : ""));
  return tensor;
}

Batch read_batch(const weights::SafetensorsFile& file, const std::string& ids, const std::string& mask) {
  Batch batch;
  batch.ids = read(file, ids);
  batch.mask = file.has(mask) ? read(file, mask, batch.ids) : at::full(batch.ids.sizes(), 1, batch.ids.options());
  return batch;
}

Batch read_inputs(const weights::SafetensorsFile& file, models::Task task) {
  Batch batch = read_batch(file, "input_ids", "attention_mask");
  if (file.has("token_type_ids")) batch.types = read(file, "token_type_ids", batch.ids);
  const auto one_a_row = [&](const std::string& name) {
    const Tensor tensor = tensor::from_view(file.at(name));
    if (tensor.dim() < 1 || tensor.size(0) != batch.ids.size(0))
      refuse(file.path().string(), name + " must have one entry a row");
    return tensor;
  };
  if (task == models::Task::question_answering) {
    if (file.has("start_positions")) batch.first = one_a_row("start_positions");
    if (file.has("end_positions")) batch.last = one_a_row("end_positions");
  } else if (task != models::Task::base && file.has("labels")) {
    batch.labels =
        task == models::Task::sequence_classification ? one_a_row("labels") : read(file, "labels", batch.ids);
  }
  return batch;
}

// The names that a file of inputs for this model may have.
std::vector<std::string> usable_inputs(const models::Model& model) {
  std::vector<std::string> names{"input_ids", "attention_mask", "prompt_ids", "prompt_mask", "max_new_tokens"};
  if (model.task() == models::Task::question_answering)
    names.insert(names.end(), {"start_positions", "end_positions"});
  else if (model.task() != models::Task::base)
    names.emplace_back("labels");
  const auto tensors = models::file_tensors(model.parameters());
  const auto is_of_types = [](const auto& tensor) { return tensor.found.ends_with("token_type_embeddings.weight"); };
  if (std::ranges::any_of(tensors, is_of_types)) names.emplace_back("token_type_ids");
  return names;
}

// Recorded files may hold the answers beside the inputs; those are passed over.
bool is_answer(const std::string& name) {
  static const std::set<std::string> answers{"logits",       "loss",           "aux_loss",      "generated",
                                             "start_logits", "embeddings",     "pooler_output", "last_hidden_state",
                                             "end_logits",   "grad_norm_total"};
  return answers.contains(name) || name.starts_with("grad_norm.");
}

void refuse_unusable(const weights::SafetensorsFile& file, const models::Model& model) {
  const std::vector<std::string> usable = usable_inputs(model);
  for (const std::string& name : file.names()) {
    if (is_answer(name) || std::ranges::find(usable, name) != usable.end()) continue;
    refuse(file.path().string(), str("has the input '", name, "', which the model cannot use"),
           str("inputs of this model: ", join(usable, ", ")));
  }
}

// All rows one after the other, including padding, so that positions are those of a plain forward in transformers.
nn::Pass pass_over_rows(const Batch& batch, const models::Model& model) {
  const int64_t rows = batch.ids.size(0), length = batch.ids.size(1);
  std::vector<int64_t> begins;
  for (int64_t row = 0; row <= rows; ++row) begins.push_back(row * length);
  nn::Pass pass = nn::Pass::over(begins);
  // Padding after the text is never visible under causal attention. Padding before or inside the text must be masked,
  // and so must any padding if attention is bidirectional or a padding token's own results count.
  const Tensor padded = batch.mask.eq(0);
  const Tensor before_text = padded.slice(1, 0, length - 1).logical_and(batch.mask.slice(1, 1, length).ne(0));
  const bool all_count = model.router_loss() && model.router_loss()->logit_z > 0.0;
  const bool counts =
      (all_count || !model.causal() || model.task() != models::Task::causal_lm) && padded.any().item<bool>();
  if (counts || (length > 1 && before_text.any().item<bool>()))
    pass.stream().masked = padded.flatten().to(model.device());
  return pass;
}

// Each prompt's tokens without padding, then the greedy continuation, all prompts in one batch.
Tensor generate(const models::Model& model, const Batch& prompts, int64_t max_new_tokens) {
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
  const std::vector<int64_t> lengths = tokens;
  std::vector<Tensor> texts = parts, made;
  for (int64_t step = 0; step < max_new_tokens; ++step) {
    const auto memory = cache->next(slots, tokens);
    nn::Pass pass = nn::Pass::next(*memory, lengths);
    const Tensor hidden = model.forward({at::cat(parts).to(model.device())}, pass).hidden;
    std::vector<Tensor> rows;
    for (size_t i = 1; i < pass.stream().cu_seqlens.size(); ++i)
      rows.push_back(hidden[pass.stream().cu_seqlens[i] - 1]);
    made.push_back(model.head().logits(at::stack(rows), pass).argmax(1).to(at::kCPU));
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

// A model's results for a batch, under the names of transformers' outputs.
struct Answer {
  std::vector<std::pair<std::string, Tensor>> outputs;
  Tensor loss;  // undefined: there are no labels
};

// labels [rows, T]. A causal model's are shifted: each token's label is that of the next token.
Answer score_words(const models::Model& model, const Batch& batch, const models::Outputs& outputs, nn::Pass& pass) {
  const Tensor& hidden = outputs.hidden;
  const int64_t rows = batch.ids.size(0), length = batch.ids.size(1);
  Tensor labels, known;
  if (batch.labels.defined()) {
    labels = batch.labels;
    if (model.task() == models::Task::causal_lm) {
      labels = at::full(batch.labels.sizes(), -100, batch.labels.options());
      labels.slice(1, 0, length - 1).copy_(batch.labels.slice(1, 1, length));
    }
    labels = labels.flatten();
    known = labels.ne(-100);
  }
  Answer out;
  const models::ConfigReader config(model.config(), FilePlace{(model.folder() / "config.json").string()});
  const auto places = [&](const Tensor& chosen) { return chosen.nonzero().squeeze(1).to(hidden.device()); };
  if (known.defined() && config.boolean("sparse_prediction", false)) {
    const Tensor wanted = labels.ne(config.integer("sparse_pred_ignore_index", -100));
    out.outputs.emplace_back("logits", model.head().logits(hidden.detach().index_select(0, places(wanted)), pass));
    known = known.logical_and(wanted);
  } else {
    out.outputs.emplace_back("logits", model.head().logits(hidden.detach(), pass).view({rows, length, -1}));
  }
  if (!known.defined()) return out;
  out.loss = -model.head()
                  .score(hidden.index_select(0, places(known)), labels.masked_select(known).to(hidden.device()), pass)
                  .logps.mean();
  if (const auto router = model.router_loss()) {
    const models::RouterTerms terms =
        router_terms(model, outputs, pass, batch.mask.flatten().ne(0).to(hidden.device()));
    if (terms.balance.defined()) out.outputs.emplace_back("aux_loss", terms.balance.reshape({1}));
    if (terms.sum.defined() && router->asked) out.loss = out.loss + terms.sum;
  }
  return out;
}

Answer score_classes(const models::Model& model, const Batch& batch, const Tensor& hidden, nn::Pass& pass) {
  const int64_t rows = batch.ids.size(0), length = batch.ids.size(1);
  const auto on_device = [&](const Tensor& t) { return t.to(hidden.device()); };
  const models::Task task = model.task();
  const Tensor scores = model.class_head()->scores(hidden, batch.ids.flatten(), pass);
  Answer out;
  if (task == models::Task::base) {
    out.outputs.emplace_back("pooler_output", scores);
  } else if (task == models::Task::sequence_classification) {
    out.outputs.emplace_back("logits", scores);
    const models::ConfigReader config(model.config(), FilePlace{(model.folder() / "config.json").string()});
    if (batch.answered())
      out.loss = models::sequence_loss(scores, on_device(batch.labels), config.text("problem_type", ""));
  } else {
    const Tensor of_tokens = scores.view({rows, length, -1});
    out.outputs.emplace_back("logits", of_tokens);
    if (task == models::Task::question_answering) {
      out.outputs.emplace_back("start_logits", of_tokens.select(2, 0));
      out.outputs.emplace_back("end_logits", of_tokens.select(2, 1));
      if (batch.answered()) out.loss = models::answer_loss(of_tokens, on_device(batch.first), on_device(batch.last));
    } else if (batch.answered()) {
      out.loss = models::class_loss(scores, on_device(batch.labels.flatten()));
    }
  }
  return out;
}

using Give = std::function<void(const std::string& name, const Tensor& value)>;

// Outputs the norm of each file tensor's gradient.
void give_gradients(const models::Model& model, const Give& give) {
  double squares = 0;
  const auto number = [](double value) { return at::full({1}, value, at::TensorOptions().dtype(at::kFloat)); };
  for (const models::FileTensor& file : models::file_tensors(model.parameters())) {
    double of_file = 0;
    for (const models::FilePart& part : file.parts) {
      Tensor gradient = part.entry->shard.grad();
      if (!gradient.defined()) continue;
      if (part.index >= 0) gradient = gradient.select(0, part.index);
      const double norm = at::linalg_vector_norm(gradient.to(at::kDouble)).item<double>();
      of_file += norm * norm;
    }
    squares += of_file;
    give("grad_norm." + file.found, number(std::sqrt(of_file)));
  }
  give("grad_norm_total", number(std::sqrt(squares)));
}

}  // namespace

void logits(const std::filesystem::path& folder, const std::filesystem::path& inputs,
            const std::filesystem::path& output, const LogitsOptions& options) {
  const auto file = weights::SafetensorsFile::open(inputs);
  models::LoadOptions load;
  load.dtype = options.dtype;
  load.attention = options.attention;
  load.moe_method = options.moe_method;
  load.device = options.device;
  load.key_prefix = "--";
  load.quantization = options.quantization;
  load.cache_format = options.cache_format;
  load.training = options.gradients && !options.quantization && (file->has("labels") || file->has("start_positions")) &&
                  (!options.adapters.empty() || !models::has_codes(folder));
  for (const std::filesystem::path& adapter : options.adapters) {
    load.adapters.push_back(models::adapter_in(adapter));
    if (load.adapters.size() > 1) load.adapters.back().name = str("adapter", load.adapters.size());
  }
  const auto model = models::load_model(folder, load);
  if (options.merged)
    for (const auto& adapter : model->adapters()) adapter->merge();
  refuse_unusable(*file, *model);
  const at::Device device = model->device();

  std::vector<weights::OutTensor> out, traced;
  const Give give = [&](const std::string& name, const Tensor& value) {
    const Tensor plain = value.detach().contiguous();
    out.push_back(tensor::to_file(name, plain, plain.scalar_type()));
  };
  if (file->has("input_ids")) {
    const models::Task task = model->task();
    const Batch batch = read_inputs(*file, task);
    const int64_t rows = batch.ids.size(0), length = batch.ids.size(1);
    const at::AutoGradMode gradients(load.training);
    nn::Pass pass = pass_over_rows(batch, *model);
    std::map<std::string, Tensor> seen;
    if (!options.trace.empty())
      pass.activations().capture = [&](std::string_view name, const Tensor& value) {
        seen[std::string(name)] = value.detach();
      };
    models::Inputs inputs{batch.ids.flatten().to(device)};
    if (batch.types.defined()) inputs.token_types = batch.types.flatten().to(device);
    const models::Outputs outputs = model->forward(inputs, pass);
    const Tensor& hidden = outputs.hidden;
    Answer answer;
    const bool words = task == models::Task::causal_lm || task == models::Task::masked_lm;
    if (words) pass.activations().capture = {};  // a language-model head is traced as a whole
    if (words)
      answer = score_words(*model, batch, outputs, pass);
    else if (model->class_head())
      answer = score_classes(*model, batch, hidden, pass);
    pass.activations().capture = {};
    if (task == models::Task::base)
      answer.outputs.emplace_back("embeddings", embeddings(read_embedding(*model), hidden, inputs.tokens, pass));
    for (const auto& [name, value] : answer.outputs) give(name, value);
    const Tensor entering = task == models::Task::masked_lm ? model->head().features(hidden, pass) : hidden;
    give("last_hidden_state", entering.to(at::kFloat).view({rows, length, -1}));
    if (!options.trace.empty() && task == models::Task::masked_lm) seen["head"] = entering.detach();
    for (const auto& [name, value] : seen) {
      const bool of_tokens = value.size(0) == rows * length;  // otherwise a head computed it from whole rows
      traced.push_back(tensor::to_file(name, of_tokens ? value.view({rows, length, -1}) : value, value.scalar_type()));
    }
    if (answer.loss.defined()) {
      give("loss", answer.loss.reshape({1}));
      if (load.training) {
        answer.loss.backward();
        give_gradients(*model, give);
      }
    }
  }
  if (file->has("max_new_tokens") && file->has("prompt_ids")) {
    const int64_t count = tensor::from_view(file->at("max_new_tokens")).to(at::kLong).flatten()[0].item<int64_t>();
    give("generated", generate(*model, read_batch(*file, "prompt_ids", "prompt_mask"), count).to(at::kCPU));
  }
  if (!options.trace.empty()) {
    const bool is_folder = files::is_folder(options.trace) || !options.trace.has_extension();
    if (is_folder) files::make_directories(options.trace);
    weights::write_safetensors(is_folder ? options.trace / "trace.safetensors" : options.trace, traced);
  }
  weights::write_safetensors(output, out);
}

}  // namespace easydel::probe
