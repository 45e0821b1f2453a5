// The kind of mask of each layer, from a configuration: EasyDeL's AttnMaskType and get_mask_details.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::ops {

enum class AttnMaskType : uint8_t { full, sliding, chunk, linear };
std::string_view name_of(AttnMaskType type);  // "ATTN_MASK_FULL", ...
// Of a name in Hugging Face's layer_types; throws UserError for an unknown name.
AttnMaskType attn_mask_type_of(std::string_view layer_type);

struct AttnMaskDetail {
  AttnMaskType mask_type = AttnMaskType::full;
  std::optional<int64_t> size;    // the sliding window, given for every layer
  std::optional<int64_t> chunks;  // attention_chunk_size
  bool operator==(const AttnMaskDetail&) const = default;
};

// One for each layer of config.json (of its text_config if there is one); nullopt without layer_types.
std::optional<std::vector<AttnMaskDetail>> get_mask_details(const Value& config);

}  // namespace easydel::ops
