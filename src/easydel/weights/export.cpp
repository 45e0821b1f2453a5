#include "easydel/weights/export.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/weights/gguf_checkpoint.h"
#include "easydel/weights/gguf_rope.h"
#include "easydel/weights/gguf_rows.h"
#include "easydel/weights/safetensors.h"

namespace easydel::weights {
namespace {

// Reads keys of config.json; UserError for values that GGUF cannot express.
class Config {
 public:
  explicit Config(const ConfigFile& file) : file_(file), keys_(&file.document) {}
  Config(const ConfigFile& file, const Value& inside) : file_(file), keys_(&inside) {}

  const Value* find(std::string_view key) const {
    const Value* value = keys_->find(key);
    return value && !value->is_null() ? value : nullptr;
  }
  int64_t integer(std::string_view key) const {
    const auto found = optional_integer(key);
    if (!found) refuse(file_.where, str("does not say ", key), "GGUF needs it; add it");
    return *found;
  }
  std::optional<int64_t> optional_integer(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return std::nullopt;
    const auto number = value->as_int();
    if (!number || *number < 0) refuse(file_.where.below(key), to_json(*value) + " is not a whole number from 0 up");
    return number;
  }
  double number(std::string_view key, double otherwise) const {
    const Value* value = find(key);
    if (!value) return otherwise;
    const auto number = value->as_double();
    if (!number) refuse(file_.where.below(key), to_json(*value) + " is not a number");
    return *number;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const Value* value = find(key);
    return value ? value->as_bool().value_or(otherwise) : otherwise;
  }
  std::string text(std::string_view key, std::string_view otherwise) const {
    const Value* value = find(key);
    return value ? value->scalar : std::string(otherwise);
  }
  // Both spellings: rope_parameters, or rope_scaling and rope_theta.
  Config rope() const {
    static const Value none = Value::map();
    for (const char* key : {"rope_scaling", "rope_parameters"})
      if (const Value* found = find(key); found && found->is_map() && !found->entries.empty()) return {file_, *found};
    return {file_, none};
  }
  [[noreturn]] void refuse_key(std::string_view key, const std::string& what) const {
    refuse(file_.where.below(key), what + ", which a GGUF file cannot say", "save the model as safetensors");
  }

 private:
  const ConfigFile& file_;
  const Value* keys_;
};

struct Sizes {
  int64_t heads, kv_heads, head;
};

void add_rope(GgufWriter& out, const std::string& prefix, const Config& config, int64_t head_size) {
  const Config rope = config.rope();
  const double theta = rope.number("rope_theta", config.number("rope_theta", 10000.0));
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  out.number(prefix + "rope.freq_base", theta);
  out.integer(prefix + "rope.dimension_count", head_size);
  if (rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0)) != 1.0)
    config.refuse_key("partial_rotary_factor", "a part of each head turns");
  if (type == "default") return;
  const double factor = rope.number("factor", 1.0);
  const auto original = rope.optional_integer("original_max_position_embeddings");
  if (type == "llama3" || type == "longrope") {
    std::vector<float> factors;
    if (type == "llama3") {
      factors = llama3_rope_factors(theta, head_size, factor, rope.number("low_freq_factor", 1),
                                    rope.number("high_freq_factor", 4),
                                    double(original.value_or(config.integer("max_position_embeddings"))));
    } else {
      const Value *one = rope.find("short_factor"), *other = rope.find("long_factor");
      if (!one || !other || !(*one == *other) || rope.number("attention_factor", 0.0) != 1.0)
        config.refuse_key("rope_scaling", "'longrope' with factors that depend on the length");
      for (const Value& item : one->items) factors.push_back(float(item.as_double().value_or(1.0)));
    }
    if (original) out.integer(prefix + "rope.scaling.original_context_length", *original);
    const auto count = int64_t(factors.size());
    return out.tensor("rope_freqs.weight", GgmlType::f32, {count}, [factors](const GgufWriter::Sink& sink) {
      sink(factors.data(), factors.size() * sizeof(float));
    });
  }
  if (type != "linear" && type != "yarn") config.refuse_key("rope_scaling", "the type '" + type + "'");
  out.text(prefix + "rope.scaling.type", type);
  out.number(prefix + "rope.scaling.factor", factor);
  if (type == "linear") return;
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (rope.find(key)) config.refuse_key("rope_scaling", str("'yarn' with ", key));
  if (!rope.flag("truncate", true)) config.refuse_key("rope_scaling", "'yarn' without truncation");
  out.integer(prefix + "rope.scaling.original_context_length",
              original.value_or(config.integer("max_position_embeddings")));
  if (rope.find("beta_fast")) out.number(prefix + "rope.scaling.yarn_beta_fast", rope.number("beta_fast", 32));
  if (rope.find("beta_slow")) out.number(prefix + "rope.scaling.yarn_beta_slow", rope.number("beta_slow", 1));
  if (rope.find("attention_factor"))
    out.number(prefix + "rope.scaling.yarn_attn_factor",
               rope.number("attention_factor", 1) / (0.1 * std::log(factor) + 1.0));
}

Sizes add_keys(GgufWriter& out, const GgufFamily& family, const Config& config, std::string_view name, GgmlType type) {
  const std::string prefix = str(family.architecture, ".");
  out.text("general.architecture", family.architecture);
  out.text("general.type", "model");
  out.text("general.name", name);
  out.integer("general.quantization_version", 2);
  out.integer("general.file_type", type == GgmlType::f32    ? 0
                                   : type == GgmlType::f16  ? 1
                                   : type == GgmlType::q4_0 ? 2
                                   : type == GgmlType::q8_0 ? 7
                                                            : 32);
  const std::string activation = config.text("hidden_activation", config.text("hidden_act", family.activation));
  const bool gelu =
      // Gemma's first files say gelu but were trained with this
      family.activation == "gelu_pytorch_tanh" && activation == "gelu";
  if (activation != family.activation && !gelu)
    config.refuse_key("hidden_act", "'" + activation + "' for " + std::string(family.model_type));
  if (family.model_type == "qwen2" || family.model_type == "qwen3")
    if (config.flag("use_sliding_window", false))
      config.refuse_key("use_sliding_window", "windows of " + std::string(family.model_type));
  const int64_t hidden = config.integer("hidden_size"), heads = config.integer("num_attention_heads");
  const Sizes sizes{heads, config.optional_integer("num_key_value_heads").value_or(heads),
                    config.optional_integer("head_dim").value_or(heads > 0 ? hidden / heads : 0)};
  if (heads < 1 || sizes.kv_heads < 1) config.refuse_key("num_attention_heads", "0");
  out.integer(prefix + "context_length", config.integer("max_position_embeddings"));
  out.integer(prefix + "embedding_length", hidden);
  out.integer(prefix + "block_count", config.integer("num_hidden_layers"));
  out.integer(prefix + "feed_forward_length", config.integer("intermediate_size"));
  out.integer(prefix + "attention.head_count", sizes.heads);
  out.integer(prefix + "attention.head_count_kv", sizes.kv_heads);
  out.integer(prefix + "attention.key_length", sizes.head);
  out.integer(prefix + "attention.value_length", sizes.head);
  out.number(prefix + "attention.layer_norm_rms_epsilon", config.number("rms_norm_eps", 1e-6));
  out.integer(prefix + "vocab_size", config.integer("vocab_size"));
  if (const auto window = config.optional_integer("sliding_window");
      family.model_type == "mistral" && window.value_or(0) > 0) {
    out.integer(prefix + "attention.sliding_window", *window);
    log::warning("llama.cpp computes this model without its window of ", *window, " tokens");
  }
  add_rope(out, prefix, config, sizes.head);
  return sizes;
}

// Writes the tensor's values as `type`, a few rows at a time.
void write_as(const TensorView& view, GgmlType type, const GgufWriter::Sink& sink) {
  const GgmlForm &from = form_of(ggml_type_of(view)), &to = form_of(type);
  if (from.type == to.type) {
    sink(view.bytes.data(), view.bytes.size());
    return files::Mapped::forget(view.bytes);
  }
  constexpr int64_t at_once = 1 << 16;  // whole blocks of every type
  std::vector<float> values(at_once);
  std::vector<std::byte> bytes(at_once * sizeof(float));
  for (int64_t done = 0, all = view.elements(); done < all; done += at_once) {
    const int64_t count = std::min(at_once, all - done);
    decode(from.type, view.bytes.data() + size_t(done / from.elements) * from.bytes, values.data(), count);
    encode(to.type, values.data(), bytes.data(), count);
    sink(bytes.data(), size_t(count / to.elements) * to.bytes);
  }
  files::Mapped::forget(view.bytes);  // so that a large model is never in memory as a whole
}

}  // namespace

GgmlType gguf_type(std::string_view word, const std::string& where) {
  if (const auto dtype = dtype_of_config(word))
    for (const GgmlType type : {GgmlType::f32, GgmlType::f16, GgmlType::bf16})
      if (form_of(type).dtype == *dtype) return type;
  if (word == "q8_0" || word == "Q8_0") return GgmlType::q8_0;
  if (word == "q4_0" || word == "Q4_0") return GgmlType::q4_0;
  refuse(where, str("'", word, "' is not a dtype that GGUF files can be written in"),
         "known: f32, f16, bf16, q8_0, q4_0");
}

void add_model(GgufWriter& out, const Folder& model, const ConfigFile& file, std::string_view name, GgmlType type) {
  const Config config(file);
  const std::string model_type = config.text("model_type", "");
  const GgufFamily* const family = gguf_family_of(model_type);
  if (!family)
    refuse(file.where, str("models of '", model_type, "' are not written as GGUF; that is not built yet"),
           "built: " + gguf_model_types());
  const Sizes sizes = add_keys(out, *family, config, name, type);
  const bool tied = config.flag("tie_word_embeddings", family->tied);
  for (const std::string& own : model.names()) {
    if (own.ends_with("rotary_emb.inv_freq")) continue;
    const bool bare = !own.starts_with("model.") && !own.starts_with("lm_head.");
    const std::string full = (bare ? "model." : "") + own;
    if (tied && full.starts_with("lm_head.")) continue;
    const std::string gguf = gguf_name(full);
    const std::string_view stem = std::string_view(gguf).substr(gguf.rfind('.', gguf.rfind('.') - 1) + 1);
    const bool wanted_bias =
        str(" ", family->biases, " ").find(str(" ", stem.substr(0, stem.find('.')), " ")) != std::string::npos;
    if (gguf.empty() || (gguf.ends_with(".bias") && !wanted_bias) ||
        (!family->head_norms &&
         (gguf.find("attn_q_norm") != std::string::npos || gguf.find("attn_k_norm") != std::string::npos)))
      refuse(model.where(own), str("has no place in a GGUF file of '", model_type, "'"),
             "save the model as safetensors");
    const TensorView info = model.info(own);
    const bool query = family->interleaved && full.find(".q_proj.") != std::string::npos;
    const bool key = family->interleaved && full.find(".k_proj.") != std::string::npos;
    const bool norm = full.ends_with("norm.weight"), matrix = info.shape.size() > 1 && !norm;
    GgmlType as = matrix ? type : GgmlType::f32;
    if (form_of(as).elements > 1 && info.shape.back() % form_of(as).elements != 0) as = GgmlType::f16;
    out.tensor(gguf, as, info.shape, [&model, own, family, sizes, query, key, norm, as](const GgufWriter::Sink& sink) {
      TensorView view = model.at(own);
      if (query || key) view = with_reordered_rows(std::move(view), query ? sizes.heads : sizes.kv_heads, false);
      if (norm && family->norm_plus_one) view = with_added(std::move(view), 1.0f);
      write_as(view, as, sink);
    });
  }
}

void add_token_ids(GgufWriter& out, const ConfigFile& config) {
  for (const auto& [from, to] : {std::pair("bos_token_id", "bos_token_id"), std::pair("eos_token_id", "eos_token_id"),
                                 std::pair("pad_token_id", "padding_token_id")}) {
    const Value* value = config.document.find(from);
    if (value && value->is_list() && !value->items.empty()) value = &value->items.front();
    const int64_t id = value ? value->as_int().value_or(-1) : -1;
    const std::string key = str("tokenizer.ggml.", to);
    if (id >= 0 && id <= UINT32_MAX && !out.has(key)) out.integer(key, id);
  }
}

void write_hugging_face(const std::filesystem::path& folder, const Folder& model, const ConfigFile& config,
                        std::string_view dtype, uint64_t max_shard_bytes) {
  const auto target = dtype == "auto" ? std::nullopt : dtype_of_config(dtype);
  const bool floating = target == DType::f32 || target == DType::f16 || target == DType::bf16;
  if (dtype != "auto" && !floating)
    refuse("--dtype", str("'", dtype, "' is not a dtype that safetensors can be written in"),
           "known: auto, f32, f16, bf16");
  std::vector<OutTensor> tensors;
  for (const std::string& name : model.names()) {
    const TensorView info = model.info(name);
    const bool number =
        info.blocks || info.dtype == DType::f32 || info.dtype == DType::f16 || info.dtype == DType::bf16;
    const DType as = target && number ? *target : info.dtype;
    tensors.push_back(
        {name, as, info.shape, [&model, name, as, number](const auto& sink) {
           const TensorView view = model.at(name);
           if (!number) return sink(view.bytes.data(), view.bytes.size());
           write_as(view, as == DType::f32 ? GgmlType::f32 : as == DType::f16 ? GgmlType::f16 : GgmlType::bf16, sink);
         }});
  }
  write_folder(folder, tensors, max_shard_bytes);
  Value document = config.document;
  if (target)
    document.set("dtype", Value::text(*target == DType::f32   ? "float32"
                                      : *target == DType::f16 ? "float16"
                                                              : "bfloat16"));
  std::erase_if(document.entries, [&](const auto& entry) { return target && entry.first == "torch_dtype"; });
  files::write(folder / "config.json", to_json(document, 2) + "\n");
}

}  // namespace easydel::weights
