#include "easydel/elarge/model_facts.h"

#include "easydel/base/files.h"
#include "easydel/base/sha256.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/isa.h"
#include "easydel/nn/parameter.h"

namespace easydel::elarge {
namespace {

std::string dtype_name(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16" : type == at::kHalf ? "fp16" : "fp32";
}

std::string tokenizer_digest(const text::Tokenizer& tokenizer) {
  std::string all;
  for (const std::filesystem::path& file : tokenizer.files())
    all += file.filename().string() + " " + files::sha256_of_file(file) + "\n";
  return files::sha256(all);
}

// Of the values that the model computes with, so that trained weights have their own.
std::string weights_digest(const models::Model& model) {
  const at::NoGradGuard no_gradient;
  files::Sha256 all;
  for (const nn::Entry& entry : model.parameters().entries()) {
    const Tensor values = nn::Parameter(const_cast<nn::Entry*>(&entry)).value().to(at::kCPU).contiguous();
    all.add(entry.path.data(), entry.path.size() + 1);
    all.add(values.const_data_ptr(), values.nbytes());
  }
  return all.hex();
}

// The template that a checkpoint was trained with, which was saved with its tokenizer; nothing: the folder is no
// checkpoint of a training, or has no template.
std::optional<std::string> training_template(const ModelFacts& facts) {
  const std::filesystem::path& folder = facts.model.folder();
  if (!files::exists(folder / "state.json") || !text::Tokenizer::exists(folder)) return std::nullopt;
  if (!facts.tokenizer->chat_template_is_given()) return facts.tokenizer->chat_template();
  return text::Tokenizer::load(folder)->chat_template();
}

}  // namespace

Value model_facts(const ModelFacts& facts, bool digests) {
  const models::Model& model = facts.model;
  Value out = Value::map();
  const auto set_text = [&out](const char* key, const std::optional<std::string>& text) {
    out.set(key, text ? Value::text(*text) : Value());
  };
  const auto set_id = [&out](const char* key, std::optional<int64_t> id) {
    out.set(key, id ? Value::integer(*id) : Value());
  };
  set_text("version", EASYDEL_VERSION);
  set_text("model", model.folder().string());
  set_text("model_type", model.model_type());
  set_text("dtype", dtype_name(model.compute_type()));
  int64_t parameters = 0;
  for (const nn::Entry& entry : model.parameters().entries())
    if (!entry.adapter) parameters += entry.elements();
  set_id("num_parameters", parameters);
  set_id("max_length", facts.max_length);
  std::optional<std::string> chat_template = facts.chat_template, digest;
  std::optional<text::TokenId> eos, bos;
  if (facts.tokenizer) {
    eos = facts.tokenizer->eos_id(), bos = facts.tokenizer->bos_id();
    if (!chat_template) chat_template = facts.tokenizer->chat_template();
    digest = tokenizer_digest(*facts.tokenizer);
    if (const auto trained = training_template(facts)) {
      set_text("training_template", trained);
      set_text("training_template_digest", files::sha256(*trained));
    }
  }
  set_id("eos_token_id", eos);
  set_id("bos_token_id", bos);
  set_id("prefix_token_id", facts.prefix);
  set_text("chat_template", chat_template);
  set_text("template_digest", chat_template ? std::optional(files::sha256(*chat_template)) : std::nullopt);
  set_text("tokenizer_digest", digest);
  set_text("isa", std::string(kernels::name(kernels::isa())));
  set_text("order", std::string(kernels::name(kernels::bf16_order())));
  if (digests) set_text("weights_digest", weights_digest(model));
  return out;
}

}  // namespace easydel::elarge
