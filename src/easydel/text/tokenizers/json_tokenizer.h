// The tokenizer that a tokenizer.json describes: its parts, and the pipeline through them.
#pragma once

#include "easydel/text/tokenizers/added_tokens.h"
#include "easydel/text/tokenizers/class_decoding.h"
#include "easydel/text/tokenizers/decoders.h"
#include "easydel/text/tokenizers/limits.h"
#include "easydel/text/tokenizers/model.h"
#include "easydel/text/tokenizers/normalizers.h"
#include "easydel/text/tokenizers/post_processors.h"
#include "easydel/text/tokenizers/pre_tokenizers.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

// Steps as tokenizer.json writes them; "": none.
struct StepTexts {
  std::string normalizer = {}, pre_tokenizer = {}, decoder = {};
  std::vector<AddedToken> added = {};  // pieces that tokenizer.json has as added tokens
  std::string missing = {};            // why tokenizer.json cannot have these steps; "": it can
};

// The parts; null: the file has none.
struct TokenizerParts {
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const PreTokenizer> pre_tokenizer;
  std::optional<Cutter> cutter;  // the pre-tokenizer, if it only splits
  std::unique_ptr<const Model> model;
  std::unique_ptr<const PostProcessor> post_processor;
  std::unique_ptr<const Decoder> decoder;
  AddedTokens added;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  bool byte_level = false;  // a normalizer or pre-tokenizer maps bytes to characters
  StepTexts steps;          // of files other than tokenizer.json
};
// UserError "name: ...": the file is not a tokenizer.
TokenizerParts parse_tokenizer_json(std::string_view json, const std::string& name);

// Settings from the files next to tokenizer.json.
struct TokenizerSettings {
  std::optional<TokenId> bos, eos, pad, unk;
  std::optional<std::string> chat_template;
  bool chat_template_is_given = false;
  bool clean_up = false;
  ClassDecoding decoding;
  std::vector<std::filesystem::path> files;
  std::vector<TokenId> new_tokens;  // no file has them
};

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(TokenizerParts parts, TokenizerSettings settings);

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override;
  Encoding encode_full(std::string_view text, const std::optional<std::string>& pair,
                       const EncodeOptions& options) const override;
  Encoding encode_with_breaks(std::string_view text, std::span<const size_t> breaks,
                              const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens, std::optional<bool> clean_up,
                     bool time_stamps) const override;
  std::optional<std::string> bytes_of(TokenId id, TextPlace& place) const override;
  int64_t vocabulary_size() const override;
  TokenId id_limit() const override;
  std::optional<TokenId> id_of(std::string_view token) const override;
  std::string token_of(TokenId id) const override;
  bool is_special(TokenId id) const override;
  std::optional<TokenId> bos_id() const override { return settings_.bos; }
  std::optional<TokenId> eos_id() const override { return settings_.eos; }
  std::optional<TokenId> pad_id() const override { return settings_.pad; }
  std::optional<TokenId> unk_id() const override { return settings_.unk; }
  std::optional<std::string> chat_template() const override { return settings_.chat_template; }
  bool chat_template_is_given() const override { return settings_.chat_template_is_given; }
  std::vector<TokenId> new_tokens() const override { return settings_.new_tokens; }
  const std::vector<std::filesystem::path>& files() const override { return settings_.files; }
  std::string as_json() const override;

 private:
  // The token as decode() gives it to the decoder; nullopt: it gives nothing.
  std::optional<std::string_view> shown(TokenId id, bool skip_special_tokens) const;
  void append_ids(std::string_view text, bool parse_special, std::vector<TokenId>& ids) const;
  void append_normalized(std::string_view text, size_t begin, bool parse_special, std::vector<TokenId>& ids) const;
  void append_pieces(std::string_view text, std::vector<TokenId>& ids) const;
  Encoding encode_one(std::string_view text, bool parse_special, std::span<const size_t> breaks = {}) const;
  void encode_piece(const NormalizedText& piece, const std::vector<uint32_t>& character_of, Encoding& out) const;

  TokenizerParts parts_;
  TokenizerSettings settings_;
  bool framed_ = false;  // the post-processor only adds prefix_ and suffix_ to the ids of one text
  std::vector<TokenId> prefix_, suffix_;
};

}  // namespace easydel::text
