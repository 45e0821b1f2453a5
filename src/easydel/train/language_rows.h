// Rows that are learned as they are (texts, conversations, prompts with completions) to examples, for the methods that
// learn every token or those of the answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/encode.h"
#include "easydel/train/method.h"

namespace easydel::train {

struct LanguageRowOptions {
  bool add_special_tokens = true;             // of plain texts, unless mixture.tokenization says otherwise
  bool assistant_only = false;                // only the assistant's messages are learned
  std::optional<bool> completion_only = {};   // not given: as TRL does for the kind of row
  std::optional<std::string> eos_token = {};  // ends plain texts; not given: the tokenizer's
  bool packed = false;                        // nothing is cut, because packing does
  bool without_template = false;              // conversations are refused
  bool last_message_only = false;             // a conversation is a prompt with its last message as the completion
};

// Refuses a conversation where trainer.skip_apply_chat_template is set.
void refuse_conversation(const data::TypedRow& row);

class LanguageRows {
 public:
  LanguageRows(const Setting& setting, const LanguageRowOptions& options);
  // No example if there is nothing to learn. Called from several threads at once.
  data::Prepared prepare(const data::TypedRow& row) const;

 private:
  // The tokens of a row with what becomes of each.
  struct Learned {
    std::vector<int32_t> ids;
    std::vector<uint8_t> learn;
    std::vector<float> weights;  // empty: all 1
  };
  // Ready tokens; a row of several sequences is packed already.
  data::Prepared prepare_tokens(const data::TypedRow& row) const;
  bool learns_completion_only(const data::TypedRow& row) const;
  bool keeps_start() const { return common_.truncation_mode == Truncation::keep_start; }
  int64_t truncate(Learned& learned, const data::TypedRow& row) const;
  void add(data::Example& example, const Learned& learned, const std::vector<int32_t>& lengths) const;
  // Weights of tokens as weights of the labels, which may be shifted.
  std::vector<float> weights_of_labels(const std::vector<float>& weights) const;
  // Applies the labels' weights: 0 is a mask; a row whose weights are all 1 has none.
  data::Prepared finished(data::Prepared out, data::Example example, std::vector<float> weights,
                          const data::TypedRow& row) const;

  LanguageRowOptions options_;
  TrainerConfig common_;
  bool truncates_ = true, shifted_ = true;
  int64_t ignored_label_;
  std::optional<data::Encoder> encoder_;  // none: there is no tokenizer
};

// The weights of a batch's labelled tokens in the loss, fp32 [labelled]; undefined: all 1.
Tensor labelled_weights(const Batch& batch);

}  // namespace easydel::train
