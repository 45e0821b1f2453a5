#include "easydel/weights/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "easydel/base/error.h"
#include "easydel/weights/gguf_rope.h"
#include "easydel/weights/gguf_rows.h"

namespace easydel::weights {
namespace {

constexpr const char* again = "fetch the file again";
constexpr std::string_view rope_factors = "rope_freqs.weight";

// What a converter adds that no folder has.
bool is_no_parameter(std::string_view name) { return name == rope_factors || name.ends_with(".rope_freqs"); }

}  // namespace

std::shared_ptr<const GgufCheckpoint> GgufCheckpoint::open(const std::filesystem::path& path) {
  return std::make_shared<GgufCheckpoint>(GgufFile::open(path));
}

GgufCheckpoint::GgufCheckpoint(std::shared_ptr<const GgufFile> file)
    : path_(file->name()), file_(std::move(file)), family_(gguf_family(file_->metadata())) {
  const GgufMetadata& metadata = file_->metadata();
  if (metadata.integer("split.count").value_or(1) > 1)
    refuse(path_.string(), "is a part of a model; that is not built yet", "join the parts with llama-gguf-split --merge");
  if (integer("expert_count", 0) > 0)
    refuse(path_.string(), "is a mixture of experts; that is not built yet for GGUF", "load the model from safetensors");
  for (const auto& [name, entry] : file_->tensors()) {
    if (is_no_parameter(name)) continue;
    const std::string known = hugging_face_name(name);
    if (known.empty())
      refuse(path_.string(), str("has the tensor ", in_quotes(name), ", which models of '", family_.model_type, "' do not have"), again);
    if (entry.type == GgmlType::i8 || entry.type == GgmlType::i16 || entry.type == GgmlType::i32 || entry.type == GgmlType::i64)
      refuse(path_.string(), str("tensor ", in_quotes(name), " holds integers"), again);
    of_.emplace(known, &entry);
  }
}

std::string GgufCheckpoint::key(std::string_view name) const { return str(family_.architecture, ".", name); }

int64_t GgufCheckpoint::integer(std::string_view name) const {
  const std::string full = key(name);
  if (const auto found = file_->metadata().integer(full)) return *found;
  // One number for each layer, where all are equal.
  const auto list = file_->metadata().integers(full);
  if (list.empty()) refuse(path_.string(), str("does not say ", full), again);
  if (std::ranges::adjacent_find(list, std::not_equal_to<>()) != list.end())
    refuse(path_.string(), str(full, " differs from layer to layer; that is not built yet"), "load the model from safetensors");
  return list.front();
}

int64_t GgufCheckpoint::integer(std::string_view name, int64_t otherwise) const {
  return file_->metadata().has(key(name)) ? integer(name) : otherwise;
}

int64_t GgufCheckpoint::kv_heads() const { return integer("attention.head_count_kv", heads()); }

int64_t GgufCheckpoint::head_size() const {
  const int64_t heads = this->heads();
  if (heads < 1) refuse(path_.string(), str(key("attention.head_count"), " is ", heads), again);
  const int64_t size = integer("attention.key_length", integer("embedding_length") / heads);
  if (integer("attention.value_length", size) != size)
    refuse(path_.string(), "has values of another size than keys; that is not built for this family", "load the model from safetensors");
  return size;
}

Value GgufCheckpoint::rope() const {
  const GgufMetadata& metadata = file_->metadata();
  const int64_t turned = integer("rope.dimension_count", head_size());
  if (turned != head_size())
    refuse(path_.string(), str("turns ", turned, " of ", head_size(), " dimensions of a head; that is not built for this family"));
  Value out = Value::map();
  const double theta = metadata.number(key("rope.freq_base")).value_or(10000.0);
  out.set("rope_theta", Value::number(theta));
  const int64_t length = integer("context_length"), original = integer("rope.scaling.original_context_length", length);
  if (const GgufFile::Entry* entry = file_->find(rope_factors)) {
    std::vector<float> factors(static_cast<size_t>(file_->view(*entry).elements()));
    decode(entry->type, file_->view(*entry).bytes.data(), factors.data(), static_cast<int64_t>(factors.size()));
    if (static_cast<int64_t>(factors.size()) != turned / 2)
      refuse(path_.string(), str(rope_factors, " has ", factors.size(), " numbers, not ", turned / 2), again);
    set_rope_factors(out, factors, original);
    return out;
  }
  const std::string type(metadata.text(key("rope.scaling.type")).value_or("none"));
  double factor = metadata.number(key("rope.scaling.factor")).value_or(0.0);
  if (factor == 0.0) factor = metadata.number(key("rope.scale_linear")).value_or(0.0);
  if (type == "none" || ((type == "linear" || type.empty()) && (factor == 0.0 || factor == 1.0))) {
    out.set("rope_type", Value::text("default"));
    return out;
  }
  if (type != "linear" && type != "yarn")
    refuse(path_.string(), str(key("rope.scaling.type"), " is '", type, "', which is not built yet"), "built: none, linear, yarn");
  out.set("rope_type", Value::text(type));
  out.set("factor", Value::number(factor));
  if (type != "yarn") return out;
  out.set("original_max_position_embeddings", Value::integer(original));
  const auto take = [&](const char* from, const char* to) {
    if (const auto number = metadata.number(key(from))) out.set(to, Value::number(*number));
  };
  take("rope.scaling.yarn_beta_fast", "beta_fast");
  take("rope.scaling.yarn_beta_slow", "beta_slow");
  for (const char* name : {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"})
    if (const auto by = metadata.number(key(name)); by && *by != 1.0)
      out.set("attention_factor", Value::number(*by * (0.1 * std::log(factor) + 1.0)));
  return out;
}

Value GgufCheckpoint::config() const {
  const GgufMetadata& metadata = file_->metadata();
  const auto* embedding = file_->find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2) refuse(path_.string(), "has no token_embd.weight of two dimensions", again);
  Value out = Value::map();
  Value classes = Value::list();
  classes.items.push_back(Value::text(std::string(family_.model_class)));
  out.set("architectures", classes);
  const auto has_bias = [&](const char* stem) { return file_->find(str("blk.0.", stem, ".bias")) != nullptr; };
  if (family_.model_type == "llama" || family_.model_type == "qwen3" || family_.model_type == "gemma")
    out.set("attention_bias", Value::boolean(has_bias("attn_q")));
  const auto id = [&](const char* from, const char* to) {
    if (const auto number = metadata.integer(from)) out.set(to, Value::integer(*number));
  };
  id("tokenizer.ggml.bos_token_id", "bos_token_id");
  const GgmlForm& form = form_of(embedding->type);
  out.set("dtype", Value::text(form.dtype == DType::bf16 ? "bfloat16" : form.dtype == DType::f16 ? "float16" : "float32"));
  id("tokenizer.ggml.eos_token_id", "eos_token_id");
  out.set("head_dim", Value::integer(head_size()));
  out.set("hidden_act", Value::text(std::string(family_.activation)));
  out.set("hidden_size", Value::integer(integer("embedding_length")));
  out.set("intermediate_size", Value::integer(integer("feed_forward_length")));
  out.set("max_position_embeddings", Value::integer(integer("context_length")));
  if (family_.model_type == "llama") out.set("mlp_bias", Value::boolean(has_bias("ffn_up")));
  out.set("model_type", Value::text(std::string(family_.model_type)));
  out.set("num_attention_heads", Value::integer(heads()));
  out.set("num_hidden_layers", Value::integer(integer("block_count")));
  out.set("num_key_value_heads", Value::integer(kv_heads()));
  id("tokenizer.ggml.padding_token_id", "pad_token_id");
  const auto epsilon = metadata.number(key("attention.layer_norm_rms_epsilon"));
  if (!epsilon) refuse(path_.string(), str("does not say ", key("attention.layer_norm_rms_epsilon")), again);
  out.set("rms_norm_eps", Value::number(*epsilon));
  out.set("rope_parameters", rope());
  if (family_.model_type == "mistral") {
    const int64_t window = integer("attention.sliding_window", 0);
    out.set("sliding_window", window > 0 ? Value::integer(window) : Value());
  }
  out.set("tie_word_embeddings", Value::boolean(file_->find("output.weight") == nullptr));
  out.set("vocab_size", Value::integer(embedding->shape[0]));
  return out;
}

std::vector<std::string> GgufCheckpoint::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : of_) out.push_back(name);
  return out;
}

TensorView GgufCheckpoint::info(std::string_view name) const {
  const auto it = of_.find(name);
  return it == of_.end() ? at(name) : file_->view(*it->second);
}

TensorView GgufCheckpoint::at(std::string_view name) const {
  const auto it = of_.find(name);
  if (it == of_.end()) refuse(path_.string(), "has no tensor " + in_quotes(name), str("it has ", of_.size(), " other tensors"));
  TensorView view = file_->view(*it->second);
  if (family_.turned && !view.shape.empty()) {
    if (name.find(".q_proj.") != std::string_view::npos) return with_turned_rows(std::move(view), heads(), true);
    if (name.find(".k_proj.") != std::string_view::npos) return with_turned_rows(std::move(view), kv_heads(), true);
  }
  if (family_.norms_of_one && name.ends_with("norm.weight")) return with_added(std::move(view), -1.0f);
  return view;
}

}  // namespace easydel::weights
