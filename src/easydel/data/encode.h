// Converts typed rows to token ids and masks, as TRL's trainers do (trl/trainer/sft_trainer.py, dpo_trainer.py): plain
// texts end in EOS, conversations go through the chat template, and an answer begins where the tokens of the prompt and
// of prompt + answer differ.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/row_kinds.h"
#include "easydel/text/render_chat.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::data {

struct EncoderOptions {
  bool add_special_tokens = true;  // BOS and the like, for plain texts
  std::optional<int32_t> eos;      // ends plain texts; not given: the tokenizer's
  bool append_eos = true;
  bool assistant_mask = false;  // mark the assistant's tokens; UserError if the template does not mark them
};

struct Encoded {
  std::vector<int32_t> ids;
  int64_t prompt = 0;              // tokens of the prompt, 0 if the row has none
  std::vector<uint8_t> assistant;  // empty, or a 1 for each token that the assistant says, or that is learned
  std::vector<float> weights;      // in the loss, for each token; empty: all 1
};

struct EncodedPair {
  std::vector<int32_t> prompt, chosen, rejected;
};

// const and thread-safe.
class Encoder {
 public:
  Encoder(std::shared_ptr<const text::Tokenizer> tokenizer, EncoderOptions options);
  Encoded encode(const TypedRow& row) const;           // text, messages, prompt_completion; UserError for a pair
  EncodedPair encode_pair(const TypedRow& row) const;  // preference; UserError for other kinds
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // Whether the row goes through the chat template. Instructions do if there is one.
  bool as_conversation(const TypedRow& row) const;
  std::vector<int32_t> plain(const std::string& text) const;
  Encoded conversation(const Value& messages, const TypedRow& row, bool generation_prompt, bool mask) const;
  // A conversation that is trained on, with the marks of its messages and the rules of its inform.
  Encoded learned_conversation(const Value& messages, const TypedRow& row) const;
  Encoded segments(const TypedRow& row) const;
  std::string ended(const std::string& text) const;
  void note_parting(const std::vector<int32_t>& prompt, size_t same) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  EncoderOptions options_;
  std::string eos_text_;
  const text::ChatRenderer& chat() const;  // created for the first conversation

  mutable std::once_flag chat_once_;
  mutable std::unique_ptr<const text::ChatRenderer> chat_;
  mutable std::atomic<bool> parting_noted_ = false;
};

}  // namespace easydel::data
