// The families that can be read from and written to GGUF, and the names of their tensors.
#include <array>
#include <cctype>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/weights/gguf_checkpoint.h"

namespace easydel::weights {
namespace {

// A file is read as the first entry of its architecture; Mistral's files say llama.
constexpr std::array families = {
    GgufFamily{"gemma", "gemma", "GemmaForCausalLM", false, true, false, true, "gelu_pytorch_tanh"},
    GgufFamily{"llama", "llama", "LlamaForCausalLM", true, false, false, false, "silu",
               "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down"},
    GgufFamily{"llama", "mistral", "MistralForCausalLM", true, false, false, false, "silu"},
    GgufFamily{"qwen2", "qwen2", "Qwen2ForCausalLM", false, false, false, false, "silu", "attn_q attn_k attn_v"},
    GgufFamily{"qwen3", "qwen3", "Qwen3ForCausalLM", false, false, true, false, "silu"},
};

constexpr std::array names = {
    GgufName{"token_embd", "model.embed_tokens", false},
    GgufName{"output_norm", "model.norm", false},
    GgufName{"output", "lm_head", false},
    GgufName{"attn_norm", "input_layernorm"},
    GgufName{"attn_q", "self_attn.q_proj"},
    GgufName{"attn_k", "self_attn.k_proj"},
    GgufName{"attn_v", "self_attn.v_proj"},
    GgufName{"attn_output", "self_attn.o_proj"},
    GgufName{"attn_q_norm", "self_attn.q_norm"},
    GgufName{"attn_k_norm", "self_attn.k_norm"},
    GgufName{"ffn_norm", "post_attention_layernorm"},
    GgufName{"ffn_gate", "mlp.gate_proj"},
    GgufName{"ffn_up", "mlp.up_proj"},
    GgufName{"ffn_down", "mlp.down_proj"},
};

struct Cut {
  std::string_view layer, stem, ending;  // "17", "attn_q", ".weight"; no layer: ""
};

// `prefix`: the text before a layer's index.
Cut cut(std::string_view name, std::string_view prefix) {
  Cut out;
  for (const std::string_view ending : {".weight", ".bias"})
    if (name.ends_with(ending)) {
      out.ending = ending;
      name.remove_suffix(ending.size());
    }
  if (name.starts_with(prefix)) {
    const std::string_view rest = name.substr(prefix.size());
    size_t digits = 0;
    while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
    if (digits > 0 && digits < rest.size() && rest[digits] == '.') {
      out.layer = rest.substr(0, digits);
      name = rest.substr(digits + 1);
    }
  }
  out.stem = name;
  return out;
}

std::string put_together(const Cut& parts, std::string_view prefix, std::string_view stem) {
  return parts.layer.empty() ? str(stem, parts.ending) : str(prefix, parts.layer, ".", stem, parts.ending);
}

}  // namespace

std::string hugging_face_name(std::string_view gguf_name) {
  const Cut parts = cut(gguf_name, "blk.");
  for (const GgufName& name : names)
    if (name.gguf == parts.stem && name.in_layer == !parts.layer.empty() && !parts.ending.empty())
      return put_together(parts, "model.layers.", name.hugging_face);
  return "";
}

std::string gguf_name(std::string_view hugging_face_name) {
  const Cut parts = cut(hugging_face_name, "model.layers.");
  for (const GgufName& name : names)
    if (name.hugging_face == parts.stem && name.in_layer == !parts.layer.empty() && !parts.ending.empty())
      return put_together(parts, "blk.", name.gguf);
  return "";
}

const GgufFamily* gguf_family_of(std::string_view model_type) {
  for (const GgufFamily& family : families)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

std::string gguf_model_types() {
  std::vector<std::string> out;
  for (const GgufFamily& family : families) out.emplace_back(family.model_type);
  return join(out, ", ");
}

const GgufFamily& gguf_family(const GgufMetadata& metadata) {
  const std::string architecture(metadata.text("general.architecture").value_or(""));
  if (architecture.empty()) refuse(metadata.name(), "does not say its general.architecture", "fetch the file again");
  // Mistral's models can only be recognized by their name or their window.
  std::string title(metadata.text("general.name").value_or(""));
  for (char& c : title) c = char(std::tolower(static_cast<unsigned char>(c)));
  const bool mistral = architecture == "llama" && (title.find("mistral") != std::string::npos ||
                                                   metadata.integer("llama.attention.sliding_window").value_or(0) > 0);
  if (mistral) return *gguf_family_of("mistral");
  for (const GgufFamily& family : families)
    if (family.architecture == architecture) return family;
  refuse(metadata.name(), str("is a GGUF file of the architecture '", architecture, "', which is not built yet"),
         str("built: ", gguf_model_types(), "; other models load from safetensors"));
}

}  // namespace easydel::weights
