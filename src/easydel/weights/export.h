// Exports a model: as keys and tensors of a GGUF file (text/tokenizers/gguf_vocabulary.h writes the vocabulary), or as
// a Hugging Face folder, from any format that is read.
#pragma once

#include <string_view>

#include "easydel/weights/folder.h"
#include "easydel/weights/gguf_write.h"

namespace easydel::weights {

// f32, f16, bf16 or q8_0; UserError "where: ..." for others.
GgmlType gguf_type(std::string_view word, const std::string& where);

// Matrices in `type` (f16 if the blocks of q8_0 do not divide their rows), everything else in fp32. `model` must live
// until the file is written. UserError: GGUF cannot express the family, a value of its configuration or a tensor.
void add_model(GgufWriter& out, const Folder& model, const ConfigFile& config, std::string_view name, GgmlType type);

// Adds the token ids that config.json names and the vocabulary, which must already be added, does not.
void add_token_ids(GgufWriter& out, const ConfigFile& config);

// Writes config.json and safetensors to `folder`. `dtype`: of every tensor, or "auto" to keep each tensor's own (fp32
// for block types).
void write_hugging_face(const std::filesystem::path& folder, const Folder& model, const ConfigFile& config,
                        std::string_view dtype, uint64_t max_shard_bytes);

}  // namespace easydel::weights
