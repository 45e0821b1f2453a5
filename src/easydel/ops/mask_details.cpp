#include "easydel/ops/mask_details.h"

#include "easydel/base/error.h"

namespace easydel::ops {

std::string_view name_of(AttnMaskType type) {
  switch (type) {
    case AttnMaskType::full:
      return "ATTN_MASK_FULL";
    case AttnMaskType::sliding:
      return "ATTN_MASK_SLIDING";
    case AttnMaskType::chunk:
      return "ATTN_MASK_CHUNK";
    case AttnMaskType::linear:
      return "ATTN_MASK_LINEAR";
  }
  throw Bug("a mask type without a name");
}

AttnMaskType attn_mask_type_of(std::string_view layer_type) {
  if (layer_type == "full_attention") return AttnMaskType::full;
  if (layer_type == "sliding_attention") return AttnMaskType::sliding;
  if (layer_type == "chunk_attention" || layer_type == "chunked_attention") return AttnMaskType::chunk;
  refuse("layer_types", "`hf_type` " + std::string(layer_type) + " is not available",
         "layers with masks: full_attention, sliding_attention, chunk_attention, chunked_attention");
}

std::optional<std::vector<AttnMaskDetail>> get_mask_details(const Value& config) {
  const Value* const text = config.find("text_config");
  const Value& of = text && text->is_map() ? *text : config;
  const Value* const types = of.find("layer_types");
  if (!types || types->is_null()) return std::nullopt;
  if (!types->is_list()) refuse("layer_types", "is not a list", "give one name for each layer");
  const auto number = [&](const char* name) -> std::optional<int64_t> {
    const Value* const found = of.find(name);
    return found ? found->as_int() : std::nullopt;
  };
  std::optional<int64_t> size = number("sliding_window");
  if (!size) size = number("sliding_windows");
  std::vector<AttnMaskDetail> out;
  for (const Value& type : types->items)
    out.push_back({attn_mask_type_of(type.scalar), size, number("attention_chunk_size")});
  return out;
}

}  // namespace easydel::ops
