// What each tokenizer.ggml.model means: ggml-org/llama.cpp src/llama-vocab.cpp.
#include "easydel/text/tokenizers/gguf_vocabulary.h"

#include <algorithm>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/gguf_patterns.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/weights/folder.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view blank_of_piece = "\xE2\x96\x81";

// The tokens of a GGUF file, by id.
struct Tokens {
  std::vector<std::string> texts;
  std::vector<int32_t> kinds;  // values of PieceKind
  std::vector<float> scores;   // empty: byte pairs, ordered by their merges

  PieceKind kind(size_t id) const { return static_cast<PieceKind>(kinds[id]); }
  void set(size_t id, PieceKind kind) { kinds[id] = int32_t(kind); }
};

Tokens tokens_of(const Tokenizer& tokenizer, int64_t rows, const std::string& where) {
  for (int64_t id = rows; id < std::max(rows, tokenizer.vocabulary_size()) + 64; ++id)
    if (const std::string token = tokenizer.token_of(static_cast<TokenId>(id)); !token.empty())
      refuse(where, str("the token '", token, "' has the id ", id, ", but the model has ", rows, " rows of embeddings"),
             "use the tokenizer that belongs to the model");
  Tokens out;
  for (int64_t id = 0; id < rows; ++id) {
    std::string token = tokenizer.token_of(static_cast<TokenId>(id));
    const bool there = !token.empty();
    out.texts.push_back(there ? std::move(token) : str("[PAD", id, "]"));
    const PieceKind kind = !there                                           ? PieceKind::unused
                           : tokenizer.is_special(static_cast<TokenId>(id)) ? PieceKind::control
                                                                            : PieceKind::normal;
    out.kinds.push_back(int32_t(kind));
  }
  return out;
}

// The patterns by which a pre-tokenizer splits; nullopt: it works differently.
std::optional<std::vector<std::string>> patterns_of(const Value* step) {
  std::vector<std::string> out;
  if (!step || step->is_null()) return out;
  const std::string type = string_field(*step, "type", "");
  if (type == "Sequence") {
    const Value* steps = step->find("pretokenizers");
    for (const Value& inner : steps ? steps->items : std::vector<Value>()) {
      const auto found = patterns_of(&inner);
      if (!found) return std::nullopt;
      out.insert(out.end(), found->begin(), found->end());
    }
    return out;
  }
  if (type == "ByteLevel") {
    if (bool_field(*step, "use_regex", true)) out.emplace_back(gpt2_pattern);
    return out;
  }
  if (type == "Digits")
    return std::vector<std::string>{bool_field(*step, "individual_digits", false) ? "\\p{N}" : "\\p{N}+"};
  const Value* pattern = step->find("pattern");
  const Value* regex = pattern ? pattern->find("Regex") : nullptr;
  const std::string behavior = string_field(*step, "behavior", "");
  const bool cuts =
      bool_field(*step, "invert", false) ? behavior == "Removed" || behavior == "Isolated" : behavior == "Isolated";
  if (type != "Split" || !regex || !cuts) return std::nullopt;
  return std::vector<std::string>{regex->scalar};
}

std::vector<std::pair<std::string, std::string>> merges_of(const Value& model) {
  std::vector<std::pair<std::string, std::string>> out;
  const Value* merges = model.find("merges");
  for (const Value& row : merges ? merges->items : std::vector<Value>()) {
    if (row.is_list() && row.items.size() == 2)
      out.emplace_back(row.items[0].scalar, row.items[1].scalar);
    else if (const size_t at = row.scalar.find(' '); at != std::string::npos)
      out.emplace_back(row.scalar.substr(0, at), row.scalar.substr(at + 1));
  }
  return out;
}

bool is_byte_token(std::string_view text) { return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>'); }

// Marks tokens that are not in the model's own vocabulary: they are searched literally.
void mark_added(Tokens& tokens, const Value& vocabulary, const Value* added) {
  std::vector<bool> own(tokens.texts.size());
  for (const auto& [token, id] : vocabulary.entries)
    if (const auto number = id.as_int(); number && *number >= 0 && *number < int64_t(own.size()))
      own[size_t(*number)] = true;
  for (const Value& token : added ? added->items : std::vector<Value>())
    if (const int64_t id = int_field(token, "id", -1); id >= 0 && id < int64_t(own.size())) own[size_t(id)] = false;
  for (size_t id = 0; id < own.size(); ++id)
    if (!own[id] && tokens.kind(id) == PieceKind::normal) tokens.set(id, PieceKind::user_defined);
}

// Expresses the order of merges as scores: an earlier merge gets a higher score; tokens that no merge makes come last.
void set_scores(Tokens& tokens, const std::vector<std::pair<std::string, std::string>>& merges,
                const Tokenizer& tokenizer) {
  tokens.scores.assign(tokens.texts.size(), -1e9f);
  for (size_t i = merges.size(); i-- > 0;)
    if (const auto id = tokenizer.id_of(merges[i].first + merges[i].second); id && size_t(*id) < tokens.scores.size())
      tokens.scores[size_t(*id)] = -float(i + 1);
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.kind(id) != PieceKind::normal && tokens.kind(id) != PieceKind::control) continue;
    if (is_byte_token(tokens.texts[id])) tokens.set(id, PieceKind::byte);
  }
}

// Writes tokenizer.ggml.model ("gpt2" or "llama") and the keys of that kind.
void add_json(weights::GgufWriter& out, const Value& json, const Tokenizer& tokenizer, const std::string& where,
              const std::string& pre, Tokens& tokens) {
  const Value* model = json.find("model");
  const std::string type = model ? string_field(*model, "type", model->find("merges") ? "BPE" : "") : "";
  if (type != "BPE")
    refuse(where, str("a tokenizer of the kind '", type, "' is not written as GGUF; that is not built yet"),
           "built: BPE");
  const Value* vocabulary = model->find("vocab");
  mark_added(tokens, vocabulary ? *vocabulary : Value::map(), json.find("added_tokens"));
  const auto merges = merges_of(*model);
  if (bool_field(*model, "byte_fallback", false)) {
    out.text("tokenizer.ggml.model", "llama");
    out.text("tokenizer.ggml.pre", pre.empty() ? "default" : pre);
    set_scores(tokens, merges, tokenizer);
    return;
  }
  const auto patterns = patterns_of(json.find("pre_tokenizer"));
  const std::string name =
      pre.empty() && patterns ? gguf_pattern_name(*patterns, bool_field(*model, "ignore_merges", false)) : pre;
  if (name.empty())
    refuse(where, "cuts texts by a pattern that has no name in GGUF",
           "name the nearest: --pre gpt-2, llama-bpe, qwen2, ...");
  out.text("tokenizer.ggml.model", "gpt2");
  out.text("tokenizer.ggml.pre", name);
  std::vector<std::string> rows;
  for (const auto& [left, right] : merges) rows.push_back(left + " " + right);
  out.texts("tokenizer.ggml.merges", rows);
}

void add_pieces(weights::GgufWriter& out, const fs::path& file, Tokens& tokens) {
  const SentencePieces pieces = read_pieces(files::read(file), file.string());
  if (!pieces.byte_pairs)
    refuse(file.string(), "a SentencePiece model that is not BPE is not written as GGUF; that is not built yet",
           "built: BPE");
  tokens.scores.assign(tokens.texts.size(), -1e9f);
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    const bool own = id < pieces.kinds.size();
    if (own) tokens.scores[id] = pieces.scores[id];
    if (own && pieces.kinds[id] != PieceKind::normal) tokens.set(id, pieces.kinds[id]);
    if (!own && tokens.kind(id) == PieceKind::normal) tokens.set(id, PieceKind::user_defined);
  }
  out.text("tokenizer.ggml.model", "llama");
  out.text("tokenizer.ggml.pre", "default");
}

}  // namespace

void add_vocabulary(weights::GgufWriter& out, const fs::path& where, int64_t rows, const std::string& pre) {
  if (std::vector<std::string> known = gguf_pattern_names(); !pre.empty() && pre != "default") {
    const std::string near = nearest(pre, known);
    if (std::find(known.begin(), known.end(), pre) == known.end())
      refuse("--pre", "'" + pre + "' is not a pre-tokenizer of llama.cpp",
             near.empty() ? "known: " + join(known, ", ") : "did you mean '" + near + "'?");
  }
  if (!Tokenizer::exists(where)) return out.text("tokenizer.ggml.model", "no_vocab");
  const auto tokenizer = Tokenizer::load(where);
  // A model that came from GGUF keeps its vocabulary as it was, next to the tokenizer.json made from it.
  const fs::path kept = where / weights::vocabulary_file;
  const fs::path file = files::is_folder(where) && files::is_file(kept) ? kept : tokenizer->files().front();
  if (file.extension() == ".gguf") {
    const auto metadata = weights::GgufMetadata::open(file);
    for (const std::string_view key : metadata.keys())
      if (key.starts_with("tokenizer.")) out.copy(metadata, key);
    return;
  }
  Tokens tokens = tokens_of(*tokenizer, rows, file.string());
  std::string name = file.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".json") && name != "vocab.json" && name != "tekken.json")
    add_json(out, parse_json(files::read_compressed(file), file.string()), *tokenizer, file.string(), pre, tokens);
  else if (name.ends_with(".model"))
    add_pieces(out, file, tokens);
  else
    refuse(file.string(), "is not written as GGUF; that is not built yet",
           "save the tokenizer with transformers as tokenizer.json");
  if (const auto unknown = tokenizer->unk_id(); unknown && !tokens.scores.empty())
    tokens.set(size_t(*unknown), PieceKind::unknown);
  out.texts("tokenizer.ggml.tokens", tokens.texts);
  if (!tokens.scores.empty()) out.numbers("tokenizer.ggml.scores", tokens.scores);
  out.integers("tokenizer.ggml.token_type", tokens.kinds);
  const auto id = [&](const char* key, std::optional<TokenId> value) {
    if (value && *value < rows) out.integer(str("tokenizer.ggml.", key), *value);
  };
  id("bos_token_id", tokenizer->bos_id());
  id("eos_token_id", tokenizer->eos_id());
  id("padding_token_id", tokenizer->pad_id());
  id("unknown_token_id", tokenizer->unk_id());
  // The tokenizer's behaviour is more reliable than the flags in its files.
  const auto plain = tokenizer->encode("a", {.add_special_tokens = false}), framed = tokenizer->encode("a");
  const auto is = [](std::optional<TokenId> token, TokenId id) { return token && *token == id; };
  out.flag("tokenizer.ggml.add_bos_token", !framed.empty() && is(tokenizer->bos_id(), framed.front()));
  out.flag("tokenizer.ggml.add_eos_token", framed.size() > 1 && is(tokenizer->eos_id(), framed.back()));
  if (!tokens.scores.empty())
    out.flag("tokenizer.ggml.add_space_prefix",
             !plain.empty() && tokenizer->token_of(plain.front()).starts_with(blank_of_piece));
  if (const auto chat = tokenizer->chat_template()) out.text("tokenizer.chat_template", *chat);
}

}  // namespace easydel::text
