// Whether training and serving agree: a conversation must begin in training with the tokens that a served model gets
// before it answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/text/chat_fingerprint.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::train {

// The tokens that end an answer of the model in a folder, when it generates; empty: there are none.
std::vector<int32_t> end_tokens(const std::filesystem::path& model_folder, const text::Tokenizer& tokenizer);

// Of the model in a folder with a tokenizer, which may be that of an adapter.
text::ChatFingerprint chat_fingerprint(const std::filesystem::path& model_folder, const text::Tokenizer& tokenizer);
// That of the model, or of the adapter, that a checkpoint has. UserError as load_chat_fingerprint.
std::optional<text::ChatFingerprint> saved_chat_fingerprint(const std::filesystem::path& checkpoint);

// What is wrong if some of the first 100 conversations differ from what `chat` would send before one of their answers,
// with the first token that does; empty: none differs, or the tokenizer has no chat template. `prepare`: as the method
// prepares rows, without a limit of length. UserError: the data cannot be read.
std::string chat_disagreement(const data::DatasetOptions& options, const data::Prepare& prepare,
                              const std::shared_ptr<const text::Tokenizer>& tokenizer);

}  // namespace easydel::train
