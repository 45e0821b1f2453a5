// The files that a tokenizer comes in beside tokenizer.json. Each reader makes the same parts of its file.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/json_tokenizer.h"
#include "easydel/weights/gguf_metadata.h"

namespace easydel::text {

// What a file says of the whole: its parts, and which tokens are which.
struct ReadTokenizer {
  TokenizerParts parts;
  std::optional<TokenId> bos, eos, pad, unk;
  std::optional<std::string> chat_template;
  std::vector<AddedToken> special;  // more special tokens than the named ones
  std::optional<Frame> frame;       // what stands around texts, by content: ids are known when all tokens are
};

// The tokens that configs name, in transformers' order; nullopt: no such token.
struct NamedTokens {
  static constexpr std::array<std::string_view, 7> keys = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                           "pad_token", "cls_token", "mask_token"};
  enum Key : uint8_t { bos, eos, unk, sep, pad, cls, mask };
  using Names = std::array<std::string_view, keys.size()>;  // what a class calls them; "": none
  std::array<std::optional<AddedToken>, 7> tokens;
  std::array<bool, 7> given{};  // a config speaks of it, if only to say that there is none

  void fill(const Names& names);  // where the config says nothing
  // The token's text; where the config denies it, the class's, which its vocabulary has all the same.
  std::string content(Key key, const Names& names) const;
};

// What stands around texts: "cls A sep B:1 sep:1", names of tokens, and texts, with their types; "cls=0" fixes an id.
// `token` says what the words are that name none.
std::vector<FrameStep> read_frame(std::string_view words, const NamedTokens& named, const NamedTokens::Names& names,
                                  const std::function<void(std::string_view word, FrameStep&)>& token);
template <class Each>
void each_part(std::string_view text, char between, Each each) {  // empty parts are passed over
  while (!text.empty()) {
    const size_t end = std::min(text.find(between), text.size());
    if (end) each(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

// All throw UserError "name: ..." where the bytes cannot be read as what they should be.

// SentencePiece's protocol buffer (tokenizer.model, spiece.model): BPE, unigram, word and character models.
// `prefix_only_at_start`: the blank before a text is not put after special tokens within it.
ReadTokenizer read_sentencepiece(std::string_view bytes, const std::string& name, bool prefix_only_at_start = false);

// What such a file says of each piece, by id.
struct SentencePieces {
  std::vector<float> scores;
  std::vector<PieceKind> kinds;
  bool byte_pairs = false;
};
SentencePieces read_pieces(std::string_view bytes, const std::string& name);

// The same file as the class of transformers that a folder names makes a tokenizer of it, with ids of its own. `config`
// is tokenizer_config.json; the class's own tokens are filled in where `named` is not given any.
struct SentencePieceClass;
// By tokenizer_class, or by config.json's model_type where that is empty; null: SentencePiece's own rules hold.
const SentencePieceClass* sentencepiece_class(std::string_view tokenizer_class, std::string_view model_type);
ReadTokenizer read_sentencepiece_as(const SentencePieceClass& kind, std::string_view bytes, const Value& config,
                                    NamedTokens& named, const std::string& name);

// Lines of base64 and rank. The pattern and the special tokens are no part of such a file: the family that `name`
// (cl100k_base.tiktoken) or the number of ranks tells decides, and cl100k's pattern where neither does.
ReadTokenizer read_tiktoken(std::string_view bytes, const std::string& name);
bool looks_like_tiktoken(std::string_view bytes);

ReadTokenizer read_tekken(std::string_view json, const std::string& name);  // Mistral's tekken.json

// The vocabulary in a GGUF file's metadata, with the pre-tokenizers that llama.cpp knows by name.
ReadTokenizer read_gguf(const std::filesystem::path& path);
ReadTokenizer read_gguf(const weights::GgufMetadata& file);

// One token a line, or vocab.json and merges.txt, with the steps of the class that `config` (tokenizer_config.json)
// names, or else `model_type` (vocabulary_classes.h); the class's own tokens are filled in where `named` is not given
// any.
ReadTokenizer read_word_list(std::string_view bytes, const Value& config, std::string_view model_type,
                             NamedTokens& named, const std::string& name);
ReadTokenizer read_vocabulary_and_merges(std::string_view vocab, std::string_view merges, const Value& config,
                                         std::string_view model_type, NamedTokens& named, const std::string& name);
// Lines of id, Python literal and length: RWKV's world vocabularies.
ReadTokenizer read_rwkv(std::string_view bytes, const std::string& name);
bool looks_like_rwkv(std::string_view bytes);

// The patterns of the families, as their tokenizer.json writes them.
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
               std::string_view decoder);  // each as tokenizer.json would write it; "" for none
AddedToken special_token(std::string content, TokenId id = -1);

}  // namespace easydel::text
