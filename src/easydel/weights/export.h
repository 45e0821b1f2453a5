// A model's files in another form: keys and tensors of a GGUF file (the vocabulary is text/gguf_vocabulary.h's), or a
// folder of Hugging Face's form out of any that is read.
#pragma once

#include <string_view>

#include "easydel/weights/folder.h"
#include "easydel/weights/gguf_write.h"

namespace easydel::weights {

// f32, f16, bf16 or q8_0; UserError "where: ..." for others.
GgmlType gguf_type(std::string_view word, const std::string& where);

// Matrices in `type` (in f16 where q8_0 does not divide their rows), everything else in fp32. `model` must live until
// the file was written. UserError where the family, a value of its configuration or a tensor has no form in GGUF.
void add_model(GgufWriter& out, const Folder& model, const ConfigFile& config, std::string_view name, GgmlType type);

// The ids of tokens that config.json names and the vocabulary, which is there already, does not.
void add_token_ids(GgufWriter& out, const ConfigFile& config);

// config.json and safetensors in `folder`, every tensor in its own number type ("auto": of blocks fp32) or in `dtype`.
void write_hugging_face(const std::filesystem::path& folder, const Folder& model, const ConfigFile& config,
                        std::string_view dtype, uint64_t max_shard_bytes);

}  // namespace easydel::weights
