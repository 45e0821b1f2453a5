#include "easydel/weights/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/regular_expression.h"
#include "easydel/weights/gguf_rope.h"
#include "easydel/weights/gguf_rows.h"

namespace easydel::weights {
namespace {

constexpr const char* fetch_checkpoint_again = "fetch the file again";
constexpr std::string_view rope_factors = "rope_freqs.weight";

// Tensors that the converter adds and no folder has.
bool is_not_parameter(std::string_view name) { return name == rope_factors || name.ends_with(".rope_freqs"); }

}  // namespace

namespace {

// "name-00002-of-00003.gguf": "name", 2 and 3.
struct PartName {
  std::string stem;
  int64_t part = 0, parts = 0;
};

std::optional<PartName> part_name(const std::filesystem::path& path) {
  static const RegularExpression pattern(R"((.*)-(\d{5})-of-(\d{5})\.gguf)");
  const std::string name = path.filename().string();
  const auto found = pattern.match(name);
  if (!found) return std::nullopt;
  const auto& groups = *found;
  return PartName{*groups[1], std::stoll(*groups[2]), std::stoll(*groups[3])};
}

std::filesystem::path path_of(const std::filesystem::path& beside, const PartName& name, int64_t part) {
  const auto digits = [](int64_t number) {
    const std::string text = std::to_string(number);
    return std::string(5 - std::min<size_t>(5, text.size()), '0') + text;
  };
  return beside.parent_path() / str(name.stem, "-", digits(part), "-of-", digits(name.parts), ".gguf");
}

}  // namespace

std::filesystem::path first_gguf_part(const std::filesystem::path& part) {
  const auto name = part_name(part);
  return name ? path_of(part, *name, 1) : part;
}

std::shared_ptr<const GgufCheckpoint> GgufCheckpoint::open(const std::filesystem::path& path) {
  const std::filesystem::path first = first_gguf_part(path);
  const auto need = [&](const std::filesystem::path& part) {
    if (!files::exists(part))
      refuse(path.string(), "its part " + part.filename().string() + " is missing", "fetch all parts of the model");
    return GgufFile::open(part);
  };
  const auto file = need(first);
  const int64_t parts = file->metadata().integer("split.count").value_or(1);
  std::vector<std::shared_ptr<const GgufFile>> others;
  if (const auto name = part_name(first); name && name->parts == parts)
    for (int64_t part = 2; part <= parts; ++part) others.push_back(need(path_of(first, *name, part)));
  return std::make_shared<GgufCheckpoint>(file, std::move(others));
}

void GgufCheckpoint::check_parts() const {
  const auto parts = file_->metadata().integer("split.count").value_or(1);
  if (parts > 1 && int64_t(files_.size()) != parts)
    refuse(path_.string(), str("is one of ", parts, " parts of a model"),
           "keep the names of the parts: NAME-00001-of-0000N.gguf");
  size_t tensors = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    const GgufMetadata& metadata = files_[i]->metadata();
    tensors += files_[i]->tensors().size();
    const auto number = metadata.integer("split.no");
    if (parts > 1 && (number != int64_t(i) || metadata.integer("split.count") != parts))
      refuse(files_[i]->name(), str("is not part ", i + 1, " of ", parts, " of ", path_.filename().string()),
             fetch_checkpoint_again);
  }
  const auto all = file_->metadata().integer("split.tensors.count");
  if (all && *all != int64_t(tensors))
    refuse(path_.string(), str("its parts hold ", tensors, " tensors, and it says ", *all), fetch_checkpoint_again);
}

GgufCheckpoint::GgufCheckpoint(std::shared_ptr<const GgufFile> file,
                               std::vector<std::shared_ptr<const GgufFile>> others)
    : path_(file->name()), file_(std::move(file)), files_{file_}, family_(gguf_family(file_->metadata())) {
  files_.insert(files_.end(), others.begin(), others.end());
  check_parts();
  if (integer("expert_count", 0) > 0)
    refuse(path_.string(), "is a mixture of experts; that is not built yet for GGUF",
           "load the model from safetensors");
  for (const auto& part : files_)
    for (const auto& [name, entry] : part->tensors()) {
      if (is_not_parameter(name)) continue;
      const std::string known = hugging_face_name(name);
      if (known.empty())
        refuse(part->name(),
               str("has the tensor ", in_quotes(name), ", which models of '", family_.model_type, "' do not have"),
               fetch_checkpoint_again);
      if (entry.type == GgmlType::i8 || entry.type == GgmlType::i16 || entry.type == GgmlType::i32 ||
          entry.type == GgmlType::i64)
        refuse(part->name(), str("tensor ", in_quotes(name), " holds integers"), fetch_checkpoint_again);
      if (!of_.emplace(known, Place{part.get(), &entry}).second)
        refuse(part->name(), str("has the tensor ", in_quotes(name), ", and so has an earlier part"),
               fetch_checkpoint_again);
    }
}

std::optional<TensorView> GgufCheckpoint::find(std::string_view gguf_name) const {
  for (const auto& part : files_)
    if (const GgufFile::Entry* const entry = part->find(gguf_name)) return part->view(*entry);
  return std::nullopt;
}

std::string GgufCheckpoint::key(std::string_view name) const { return str(family_.architecture, ".", name); }

int64_t GgufCheckpoint::integer(std::string_view name) const {
  const std::string full = key(name);
  if (const auto found = file_->metadata().integer(full)) return *found;
  // A list with one value per layer is accepted if all are equal.
  const auto list = file_->metadata().integers(full);
  if (list.empty()) refuse(path_.string(), str("does not say ", full), fetch_checkpoint_again);
  if (std::ranges::adjacent_find(list, std::not_equal_to<>()) != list.end())
    refuse(path_.string(), str(full, " differs from layer to layer; that is not built yet"),
           "load the model from safetensors");
  return list.front();
}

int64_t GgufCheckpoint::integer(std::string_view name, int64_t otherwise) const {
  return file_->metadata().has(key(name)) ? integer(name) : otherwise;
}

int64_t GgufCheckpoint::kv_heads() const { return integer("attention.head_count_kv", heads()); }

int64_t GgufCheckpoint::head_size() const {
  const int64_t heads = this->heads();
  if (heads < 1) refuse(path_.string(), str(key("attention.head_count"), " is ", heads), fetch_checkpoint_again);
  const int64_t size = integer("attention.key_length", integer("embedding_length") / heads);
  if (integer("attention.value_length", size) != size)
    refuse(path_.string(), "has values of another size than keys; that is not built for this family",
           "load the model from safetensors");
  return size;
}

Value GgufCheckpoint::rope() const {
  const GgufMetadata& metadata = file_->metadata();
  const int64_t turned = integer("rope.dimension_count", head_size());
  if (turned != head_size())
    refuse(path_.string(),
           str("rotates ", turned, " of ", head_size(), " dimensions of a head; that is not built for this family"));
  Value out = Value::map();
  const double theta = metadata.number(key("rope.freq_base")).value_or(10000.0);
  out.set("rope_theta", Value::number(theta));
  const int64_t length = integer("context_length"), original = integer("rope.scaling.original_context_length", length);
  if (const auto stored = find(rope_factors)) {
    std::vector<float> factors(size_t(stored->elements()));
    decode(ggml_type_of(*stored), stored->bytes.data(), factors.data(), int64_t(factors.size()));
    if (int64_t(factors.size()) != turned / 2)
      refuse(path_.string(), str(rope_factors, " has ", factors.size(), " numbers, not ", turned / 2),
             fetch_checkpoint_again);
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
    refuse(path_.string(), str(key("rope.scaling.type"), " is '", type, "', which is not built yet"),
           "built: none, linear, yarn");
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
  const auto embedding = find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2)
    refuse(path_.string(), "has no token_embd.weight of two dimensions", fetch_checkpoint_again);
  Value out = Value::map();
  Value classes = Value::list();
  classes.items.push_back(Value::text(std::string(family_.model_class)));
  out.set("architectures", classes);
  const auto has_bias = [&](const char* stem) { return find(str("blk.0.", stem, ".bias")).has_value(); };
  if (family_.model_type == "llama" || family_.model_type == "qwen3" || family_.model_type == "gemma")
    out.set("attention_bias", Value::boolean(has_bias("attn_q")));
  const auto id = [&](const char* from, const char* to) {
    if (const auto number = metadata.integer(from)) out.set(to, Value::integer(*number));
  };
  id("tokenizer.ggml.bos_token_id", "bos_token_id");
  const GgmlForm& form = form_of(ggml_type_of(*embedding));
  out.set("dtype", Value::text(form.dtype == DType::bf16  ? "bfloat16"
                               : form.dtype == DType::f16 ? "float16"
                                                          : "float32"));
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
  if (!epsilon)
    refuse(path_.string(), str("does not say ", key("attention.layer_norm_rms_epsilon")), fetch_checkpoint_again);
  out.set("rms_norm_eps", Value::number(*epsilon));
  out.set("rope_parameters", rope());
  if (family_.model_type == "mistral") {
    const int64_t window = integer("attention.sliding_window", 0);
    out.set("sliding_window", window > 0 ? Value::integer(window) : Value());
  }
  out.set("tie_word_embeddings", Value::boolean(!find("output.weight")));
  out.set("vocab_size", Value::integer(embedding->shape[0]));
  return out;
}

std::vector<std::string> GgufCheckpoint::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : of_) out.push_back(name);
  return out;
}

TensorView GgufCheckpoint::info(std::string_view name) const {
  const auto it = of_.find(name);
  return it == of_.end() ? at(name) : it->second.file->view(*it->second.entry);
}

int64_t GgufCheckpoint::heads_in_pairs(std::string_view name) const {
  if (!family_.interleaved) return 0;
  if (name.find(".q_proj.") != std::string_view::npos) return heads();
  return name.find(".k_proj.") != std::string_view::npos ? kv_heads() : 0;
}

StoredRows GgufCheckpoint::stored(std::string_view name) const {
  const int64_t heads = heads_in_pairs(name);
  if (heads == 0) return {at(name)};
  const TensorView view = info(name);
  return {view, has_heads(view, heads) ? heads : 0};
}

TensorView GgufCheckpoint::at(std::string_view name) const {
  const auto it = of_.find(name);
  if (it == of_.end())
    refuse(path_.string(), "has no tensor " + in_quotes(name), str("it has ", of_.size(), " other tensors"));
  TensorView view = it->second.file->view(*it->second.entry);
  if (const int64_t heads = heads_in_pairs(name); heads > 0) return with_reordered_rows(std::move(view), heads, true);
  if (family_.norm_plus_one && name.ends_with("norm.weight")) return with_added(std::move(view), -1.0f);
  return view;
}

}  // namespace easydel::weights
