// Tokenizer files other than tokenizer.json. Every reader produces the same parts.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/json_tokenizer.h"
#include "easydel/weights/gguf_metadata.h"

namespace easydel::text {

// The result of reading a file: the parts, and the special tokens.
struct ReadTokenizer {
  TokenizerParts parts;
  std::optional<TokenId> bos, eos, pad, unk;
  std::optional<std::string> chat_template;
  std::vector<AddedToken> special;  // special tokens besides the named ones
  std::optional<Frame> frame;       // tokens around texts, by content; ids are assigned when all tokens are known
};

// The special tokens that configurations name, in transformers' order; nullopt: no such token.
struct NamedTokens {
  static constexpr std::array<std::string_view, 7> keys = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                           "pad_token", "cls_token", "mask_token"};
  enum Key : uint8_t { bos, eos, unk, sep, pad, cls, mask };
  using Names = std::array<std::string_view, keys.size()>;  // the names that a class uses; "": none
  std::array<std::optional<AddedToken>, 7> tokens;
  std::array<bool, 7> given{};  // the configuration has the key, perhaps with null

  void fill(const Names& names);  // sets the tokens whose keys the configuration lacks
  // The token's text; if the configuration sets it to null, the class's name, which its vocabulary still has.
  std::string content(Key key, const Names& names) const;
};

// Parses a frame, the tokens around texts: "cls A sep B:1 sep:1" holds names of tokens and the texts A and B, with type
// ids after colons; "cls=0" sets an id. `token` resolves words that are not names of `named`.
std::vector<FrameStep> read_frame(std::string_view words, const NamedTokens& named, const NamedTokens::Names& names,
                                  const std::function<void(std::string_view word, FrameStep&)>& token);
template <class Each>
void each_part(std::string_view text, char between, Each each) {  // skips empty parts
  while (!text.empty()) {
    const size_t end = std::min(text.find(between), text.size());
    if (end) each(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

// All readers throw UserError "name: ..." if the bytes do not have the expected format.

// SentencePiece's protocol buffer (tokenizer.model, spiece.model): BPE, unigram, word and character models.
// `prefix_only_at_start`: add the blank only at the start of the text, not after special tokens within it.
ReadTokenizer read_sentencepiece(std::string_view bytes, const std::string& name, bool prefix_only_at_start = false);

// The pieces of such a file, by id.
struct SentencePieces {
  std::vector<float> scores;
  std::vector<PieceKind> kinds;
  bool byte_pairs = false;
};
SentencePieces read_pieces(std::string_view bytes, const std::string& name);

// The same file, read as a class of transformers does, with the ids of the class. `config` is tokenizer_config.json;
// sets the tokens of `named` that are not given to the class's own.
struct SentencePieceClass;
// By tokenizer_class, or by config.json's model_type if that is empty; null: SentencePiece's own rules apply.
const SentencePieceClass* sentencepiece_class(std::string_view tokenizer_class, std::string_view model_type);
ReadTokenizer read_sentencepiece_as(const SentencePieceClass& kind, std::string_view bytes, const Value& config,
                                    NamedTokens& named, const std::string& name);

// Lines of base64 and rank. Such a file has no pattern and no special tokens; they are chosen by the family, recognized
// by `name` (cl100k_base.tiktoken) or the number of ranks, with cl100k's pattern as the fallback.
ReadTokenizer read_tiktoken(std::string_view bytes, const std::string& name);
bool looks_like_tiktoken(std::string_view bytes);

ReadTokenizer read_tekken(std::string_view json, const std::string& name);  // Mistral's tekken.json

// The vocabulary in the metadata of a GGUF file, with the pre-tokenizers that llama.cpp names.
ReadTokenizer read_gguf(const std::filesystem::path& path);
ReadTokenizer read_gguf(const weights::GgufMetadata& file);

// One token per line, or vocab.json and merges.txt, with the steps of the class that `config` (tokenizer_config.json)
// or else `model_type` names (vocabulary_classes.h). Sets the tokens of `named` that are not given to the class's own.
ReadTokenizer read_word_list(std::string_view bytes, const Value& config, std::string_view model_type,
                             NamedTokens& named, const std::string& name);
ReadTokenizer read_vocabulary_and_merges(std::string_view vocab, std::string_view merges, const Value& config,
                                         std::string_view model_type, NamedTokens& named, const std::string& name);
// Lines of id, Python literal and length: RWKV's world vocabularies.
ReadTokenizer read_rwkv(std::string_view bytes, const std::string& name);
bool looks_like_rwkv(std::string_view bytes);

// The split patterns of the families, as in their tokenizer.json.
inline constexpr std::string_view cl100k_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view qwen3_5_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view o200k_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view tekken_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Steps that several files share.
void set_byte_level(TokenizerParts& parts, const std::vector<std::string>& patterns);  // splits, then mapped bytes
void set_steps(TokenizerParts& parts, std::string_view normalizer, std::string_view pre_tokenizer,
               std::string_view decoder);  // each as in tokenizer.json; "": none
AddedToken special_token(std::string content, TokenId id = -1);

}  // namespace easydel::text
