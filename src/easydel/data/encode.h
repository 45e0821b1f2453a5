// Converts typed rows to token ids and masks, as TRL's trainers do (trl/trainer/sft_trainer.py, dpo_trainer.py): plain
// texts end in EOS, conversations go through the chat template, and an answer begins where the tokens of the prompt and
// of prompt + answer differ.
#pragma once

#include <array>
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
  bool merges = false;             // the prompt's last tokens are others once the answer follows, and left out
  bool masks_answer = false;       // nothing is learned of one of the assistant's messages, though no mark says so
};

struct EncodedPair {
  std::vector<int32_t> prompt, chosen, rejected, reference;  // reference: empty unless asked for
  bool merges = false;                                       // as Encoded's
};

// Tokens of a prompt and an answer that were told apart by the prompt's own number of tokens.
struct SeparateAnswer {
  std::vector<int32_t> prompt, answer;
  bool ready = false;   // as the row has them: nothing is added
  bool merges = false;  // as Encoded's
};

// Rows of ready tokens (TypedRow::answers) are given back as they are. const and thread-safe.
class Encoder {
 public:
  Encoder(std::shared_ptr<const text::Tokenizer> tokenizer, EncoderOptions options);
  // text, messages, prompt_completion, unpaired; UserError for other kinds.
  Encoded encode(const TypedRow& row) const;
  // preference; UserError for other kinds. With the row's third answer if `with_reference`; UserError if it has none.
  EncodedPair encode_pair(const TypedRow& row, bool with_reference = false) const;
  std::vector<int32_t> encode_prompt(const TypedRow& row) const;  // ready to be answered
  // preference: prompt with chosen, prompt with rejected, each as one text or conversation.
  std::array<std::vector<int32_t>, 2> encode_whole_pair(const TypedRow& row) const;

  // The answers of a row (preference: chosen and rejected; unpaired: its completion) as TRL's trainers without
  // DPO's preparation have them (build_tokenized_answer): conversations become texts first, nothing adds special
  // tokens, and the answer begins after as many tokens as the prompt alone has, or one before if that one merged.
  std::vector<SeparateAnswer> encode_separately(const TypedRow& row) const;
  // Begins the prompt with BOS and ends the answer with EOS, where they are missing.
  void add_ends(SeparateAnswer& one) const;
  int64_t missing_ends(const SeparateAnswer& one) const;  // how many tokens that adds, as TRL counts them
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // Whether the row goes through the chat template. Instructions do if there is one.
  bool as_conversation(const TypedRow& row) const;
  std::vector<int32_t> plain(const std::string& text) const;
  Encoded conversation(const Value& messages, const TypedRow& row, bool generation_prompt, bool mask) const;
  // A conversation that is trained on, with the marks of its messages and the rules of its inform.
  Encoded learned_conversation(const Value& messages, const TypedRow& row) const;
  Encoded segments(const TypedRow& row) const;
  std::string rendered(const Value& messages, const TypedRow& row, bool generation_prompt) const;
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
