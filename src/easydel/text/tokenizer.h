// A Hugging Face tokenizer: text to ids and back. Everything here is const and thread-safe.
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
  bool add_special_tokens = true;  // run the post-processor's template (BOS, EOS, [CLS] ...)
  bool parse_special = true;       // text that spells a special token becomes that token
  bool file_limits = false;        // truncate and pad as the file's own sections say (transformers ignores them)
};

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;                   // as the vocabulary writes them; added tokens as they stood there
  std::vector<std::pair<int64_t, int64_t>> offsets;  // in characters (Unicode code points) of the text
  std::vector<uint8_t> special_tokens_mask;
  std::vector<uint8_t> type_ids;  // 0: the first text, 1: the second (as the template says)
  // With file_limits: what truncation cut off, each as long as may be and as many tokens into the one before as the
  // file's stride says; of a pair every combination, nested as upstream nests them.
  std::vector<Encoding> overflowing = {};
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // A folder, or tokenizer.json (also .gz); other forms refuse with "not built yet". UserError says what is wrong.
  // Beside tokenizer.json: tokenizer_config.json, special_tokens_map.json, chat_template.jinja, config.json's and
  // generation_config.json's ids.
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& folder_or_file);

  static bool exists(const std::filesystem::path& folder_or_file);  // whether load() would find a file to read

  virtual std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  virtual Encoding encode_full(std::string_view text, const std::optional<std::string>& pair,
                               const EncodeOptions& options = {}) const = 0;
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true,
                             std::optional<bool> clean_up = std::nullopt) const = 0;

  virtual int64_t vocabulary_size() const = 0;  // added tokens counted
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  virtual std::string token_of(TokenId id) const = 0;  // empty: no such id
  virtual bool is_special(TokenId id) const = 0;

  // From tokenizer_config.json / special_tokens_map.json; nullopt: not given.
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  virtual std::optional<TokenId> pad_id() const = 0;
  virtual std::optional<TokenId> unk_id() const = 0;
  virtual std::optional<std::string> chat_template() const = 0;  // the default one

  // The files that make this tokenizer, as they were read.
  virtual const std::vector<std::filesystem::path>& files() const = 0;
};

// Copies of the tokenizer's files into a model folder, where it has none of the name; of a GGUF file its vocabulary
// alone.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

// Streaming decode: never half a character; the pieces always add up to decode(all ids, skip_special_tokens, false).
class DecodeStream {
 public:
  explicit DecodeStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens = true);
  std::string push(TokenId id);  // what can be shown now, perhaps nothing
  std::string finish();          // the rest

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::vector<TokenId> ids_;
  size_t prefix_ = 0, shown_ = 0;  // ids before `prefix_` are settled
  std::string emitted_;
};

}  // namespace easydel::text
