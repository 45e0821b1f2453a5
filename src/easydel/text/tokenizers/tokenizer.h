// A Hugging Face tokenizer: text to ids and back. Everything is const and thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace easydel::text {

using TokenId = int32_t;

struct EncodeOptions {
  bool add_special_tokens = true;  // apply the post-processor's template (BOS, EOS, [CLS], ...)
  bool parse_special = true;       // text that spells a special token is encoded as that token
  bool file_limits = false;        // truncate and pad by the file's own sections (transformers ignores them)
};

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;                   // as in the vocabulary; added tokens as in the text
  std::vector<std::pair<int64_t, int64_t>> offsets;  // in characters (Unicode code points) of the text
  std::vector<uint8_t> special_tokens_mask;
  std::vector<uint8_t> type_ids;  // by the template; usually 0: first text, 1: second text
  // With file_limits: the parts that truncation removed, each of the maximal length and overlapping the previous one by
  // the file's stride; for pairs all combinations, nested as upstream nests them.
  std::vector<Encoding> overflowing = {};
};

// What a token's text may depend on besides the token.
enum class TextPlace : uint8_t {
  start,        // nothing is before it
  inside,       // something is
  after_a_word  // a word is, whose blank comes only if something follows it
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Loads a folder or a tokenizer file (tokenizer.json also as .gz). UserError: missing, broken, or a format that is
  // not built yet. Also reads, from the same folder: tokenizer_config.json, special_tokens_map.json,
  // chat_template.jinja, and the ids in config.json and generation_config.json. `chat_template`: takes the place of
  // theirs, and is saved with the tokenizer. `new_tokens`: get the ids from the largest one on, in their order; they
  // are ordinary tokens that are found in the text as it is written. UserError "lora.added_tokens": the tokenizer has
  // one of them, or is of a format that cannot be saved with them.
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& folder_or_file,
                                               const std::optional<std::string>& chat_template = std::nullopt,
                                               const std::vector<std::string>& new_tokens = {});

  static bool exists(const std::filesystem::path& folder_or_file);  // true if load() would find a file

  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  virtual Encoding encode_full(std::string_view text, const std::optional<std::string>& pair,
                               const EncodeOptions& options = {}) const = 0;
  // A text of which parts must stay text even where they spell special tokens. `breaks`: places in the text, in bytes;
  // no special token begins before one and ends after it. `options`: without file_limits. The text is valid UTF-8.
  virtual Encoding encode_with_breaks(std::string_view text, std::span<const size_t> breaks,
                                      const EncodeOptions& options = {}) const = 0;
  // `time_stamps`: keep Whisper's, which are left out by default.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true,
                             std::optional<bool> clean_up = std::nullopt, bool time_stamps = false) const = 0;

  // The bytes that a token adds to decode(ids, true, false), perhaps a part of a character. nullopt: it adds no text
  // (it is special, or there is no such id), or what it adds depends on its neighbours in another way than `place`
  // says. `place` becomes that of the next token.
  virtual std::optional<std::string> bytes_of(TokenId id, TextPlace& place) const = 0;

  virtual int64_t vocabulary_size() const = 0;  // including added tokens
  virtual TokenId id_limit() const = 0;         // one more than the largest id
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  virtual std::string token_of(TokenId id) const = 0;  // empty: no such id
  virtual bool is_special(TokenId id) const = 0;

  // From tokenizer_config.json or special_tokens_map.json; nullopt: not given.
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  virtual std::optional<TokenId> pad_id() const = 0;
  virtual std::optional<TokenId> unk_id() const = 0;
  virtual std::optional<std::string> chat_template() const = 0;  // the default one, or the given one
  virtual bool chat_template_is_given() const { return false; }  // it was given to load(), so no file has it

  // Tokens that were given to load(), by id: no file has them.
  virtual std::vector<TokenId> new_tokens() const { return {}; }

  // The files that this tokenizer was read from.
  virtual const std::vector<std::filesystem::path>& files() const = 0;

  // The contents of a tokenizer.json, for a tokenizer that was read from another file. UserError that says why: this
  // tokenizer does something that tokenizer.json cannot express.
  virtual std::string as_json() const = 0;
};

// Copies the tokenizer's files to a model folder, except files that already exist there; from a GGUF file only the
// vocabulary. New tokens are written into tokenizer.json. A tokenizer of another format is written as tokenizer.json,
// too, which other programs load; a warning says why if tokenizer.json cannot express it, and then there is none.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

// The text that `ids` add to the text of `before`. Differs from decode(ids) where the decoder drops the space at the
// beginning of a text.
std::string decode_continuation(const Tokenizer& tokenizer, std::span<const TokenId> before,
                                std::span<const TokenId> ids, bool skip_special_tokens = true);

// Streaming decode: never returns part of a character; the concatenated pieces equal decode_continuation(before, ids).
class DecodeStream {
 public:
  explicit DecodeStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens = true,
                        std::span<const TokenId> before = {});
  std::string push(TokenId id);  // the text that is final now; may be empty
  std::string finish();          // the rest

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::vector<TokenId> ids_;       // the end of `before`, then the ids that were pushed
  size_t before_;                  // the number of those of `before`
  size_t prefix_ = 0, shown_ = 0;  // ids before `prefix_` are settled
  std::string emitted_;
};

}  // namespace easydel::text
