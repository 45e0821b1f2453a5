// The models that look up words: WordPiece (arXiv:1609.08144, greedy longest match first), WordLevel, RWKV's.
#include "easydel/base/error.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/model.h"
#include "easydel/text/tokenizers/prefix_trie.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

class WordPiece final : public Model {
 public:
  WordPiece(const Value& options, ModelData data)
      : prefix_(string_field(options, "continuing_subword_prefix", "##")),
        longest_(int_field(options, "max_input_chars_per_word", 100)) {
    vocabulary_ = std::move(data.vocabulary);
    unknown_text_ = string_field(options, "unk_token", "[UNK]");
    unknown_ = vocabulary_.find(unknown_text_);
  }

  ModelSection section() const override {
    ModelSection out;
    out.options.set("type", Value::text("WordPiece"));
    out.options.set("unk_token", Value::text(unknown_text_));
    out.options.set("continuing_subword_prefix", Value::text(prefix_));
    out.options.set("max_input_chars_per_word", Value::integer(longest_));
    return out;
  }

  void tokenize(std::string_view piece, std::vector<Token>& out) const override {
    size_t before = out.size();
    auto unknown = [&] {
      if (unknown_ < 0)
        refuse("tokenizer.json", "the unknown token is not in the vocabulary", "fetch the tokenizer again");
      out.resize(before);
      out.push_back({unknown_, uint32_t(piece.size())});
    };
    if (count_characters(piece) > longest_) return unknown();
    std::string word;
    for (size_t at = 0; at < piece.size();) {
      word = at ? prefix_ : "";
      size_t skipped = word.size();
      word += piece.substr(at);
      TokenId id = vocabulary_.find(word);
      while (id < 0 && word.size() > skipped) {
        do word.pop_back();
        while (word.size() > skipped && (piece[at + word.size() - skipped] & 0xc0) == 0x80);
        if (word.size() > skipped) id = vocabulary_.find(word);
      }
      if (id < 0) return unknown();
      out.push_back({id, uint32_t(word.size() - skipped)});
      at += word.size() - skipped;
    }
  }

 private:
  std::string prefix_, unknown_text_;
  int64_t longest_;
  TokenId unknown_;
};

class WordLevel final : public Model {
 public:
  WordLevel(const Value& options, ModelData data) {
    vocabulary_ = std::move(data.vocabulary);
    unknown_text_ = string_field(options, "unk_token", "<unk>");
    unknown_ = vocabulary_.find(unknown_text_);
  }

  ModelSection section() const override {
    ModelSection out;
    out.options.set("type", Value::text("WordLevel"));
    out.options.set("unk_token", Value::text(unknown_text_));
    return out;
  }

  void tokenize(std::string_view piece, std::vector<Token>& out) const override {
    if (piece.empty()) return;
    TokenId id = vocabulary_.find(piece);
    if (id < 0) id = unknown_;
    if (id < 0) refuse("tokenizer.json", "the unknown token is not in the vocabulary", "fetch the tokenizer again");
    out.push_back({id, uint32_t(piece.size())});
  }

 private:
  std::string unknown_text_;
  TokenId unknown_;
};

class LongestFirst final : public Model {
 public:
  explicit LongestFirst(ModelData data) {
    vocabulary_ = std::move(data.vocabulary);
    std::vector<std::pair<std::string_view, int32_t>> keys;
    for (size_t i = 0; i < vocabulary_.id_limit(); ++i)
      if (auto bytes = unmap_bytes(vocabulary_.token(static_cast<TokenId>(i))); bytes && !bytes->empty())
        raw_.emplace_back(std::move(*bytes), int32_t(i));
    for (auto& [bytes, id] : raw_) keys.emplace_back(bytes, id);
    trie_ = PrefixTrie(keys);
  }
  bool takes_raw_bytes() const override { return true; }
  ModelSection section() const override {
    refuse("tokenizer.json",
           "takes the longest token at each place of the whole text (RWKV), which no model there does");
  }

  void tokenize(std::string_view piece, std::vector<Token>& out) const override {
    for (size_t at = 0; at < piece.size();) {
      size_t length = 1;
      TokenId id = trie_.longest(piece, at, length);
      if (id < 0) refuse("tokenizer", str("the vocabulary lacks the byte ", int(uint8_t(piece[at]))));
      out.push_back({id, uint32_t(length)});
      at += length;
    }
  }

 private:
  std::vector<std::pair<std::string, int32_t>> raw_;
  PrefixTrie trie_;
};

}  // namespace

std::unique_ptr<const Model> make_longest_first(ModelData data) {
  return std::make_unique<LongestFirst>(std::move(data));
}

std::unique_ptr<const Model> make_word_piece(const Value& options, ModelData data) {
  return std::make_unique<WordPiece>(options, std::move(data));
}

std::unique_ptr<const Model> make_word_level(const Value& options, ModelData data) {
  return std::make_unique<WordLevel>(options, std::move(data));
}

}  // namespace easydel::text
