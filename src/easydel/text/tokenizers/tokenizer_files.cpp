// Finds a tokenizer's files, and reads special tokens, BOS and EOS rules and the template from the files next to them.
#include <algorithm>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/fetched.h"
#include "easydel/base/files.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/write_json.h"
#include "easydel/weights/folder.h"
#include "easydel/weights/gguf_write.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;

// The JSON object in `path`; empty if there is no such file.
Value read_beside(const fs::path& path, std::vector<fs::path>& read) {
  if (!files::is_file(path)) return Value::map();
  files::refuse_unfetched(path);
  Value out = parse_json(files::read(path), path.string());
  if (!out.is_map()) refuse(path.string(), "is not a JSON object", "fetch the tokenizer again");
  read.push_back(path);
  return out;
}

// The readers ask for these keys of tokenizer_config.json by name, as they ask for those of tokenizer.json.
void check_flags(const Value& config, const fs::path& file) {
  for (const char* key : {"add_bos_token", "add_eos_token", "add_prefix_space", "clean_text",
                          "clean_up_tokenization_spaces", "do_lower_case", "keep_accents", "legacy", "legacy_behaviour",
                          "split_by_punct", "strip_accents", "tokenize_chinese_chars", "trim_offsets"})
    if (const Value* flag = config.find(key); !is_absent(flag) && !flag->as_bool())
      refuse(file.string(), str("'", key, "' is neither true nor false"), fetch_tokenizer_again);
}

// "<s>" or {"content": "<s>", ...}.
std::optional<AddedToken> named_token(const Value& settings, std::string_view key) {
  const Value* value = settings.find(key);
  AddedToken token;
  token.special = true;
  token.normalized = false;
  if (value && value->is_text()) {
    token.content = value->scalar;
  } else if (const Value* content = value && value->is_map() ? value->find("content") : nullptr) {
    token.content = content->scalar;
    token.normalized = bool_field(*value, "normalized", false);
    token.single_word = bool_field(*value, "single_word", false);
    token.lstrip = bool_field(*value, "lstrip", false);
    token.rstrip = bool_field(*value, "rstrip", false);
  }
  if (token.content.empty()) return std::nullopt;
  return token;
}

std::optional<std::string> template_in(const Value& settings) {
  const Value* value = settings.find("chat_template");
  if (!value) return std::nullopt;
  if (value->is_text()) return value->scalar;
  if (!value->is_list()) return std::nullopt;
  std::optional<std::string> first;
  for (const Value& item : value->items) {
    const Value *name = item.find("name"), *source = item.find("template");
    if (!name || !source) continue;
    if (name->scalar == "default") return source->scalar;
    if (!first) first = source->scalar;
  }
  return value->items.size() == 1 ? first : std::nullopt;
}

// An id, or the first of a list of ids, as in config.json and generation_config.json.
std::optional<TokenId> id_in(const Value& config, std::string_view key) {
  const Value* value = config.find(key);
  if (value && value->is_list() && !value->items.empty()) value = &value->items[0];
  if (!value) return std::nullopt;
  auto id = value->as_int();
  if (!id || *id < 0 || *id > INT32_MAX) return std::nullopt;
  return static_cast<TokenId>(*id);
}

// The tokens of added_tokens_decoder, ordered by id. special_tokens_map.json is used only if there is no such list.
std::map<int64_t, AddedToken> decoder_of(const Value& config) {
  std::map<int64_t, AddedToken> out;
  const Value* decoder = config.find("added_tokens_decoder");
  if (!decoder || !decoder->is_map()) return out;
  for (auto& [id, item] : decoder->entries) {
    const Value* content = item.find("content");
    if (!content) continue;
    AddedToken token;
    token.content = content->scalar;
    token.special = bool_field(item, "special", false);
    token.normalized = bool_field(item, "normalized", !token.special);
    token.single_word = bool_field(item, "single_word", false);
    token.lstrip = bool_field(item, "lstrip", false);
    token.rstrip = bool_field(item, "rstrip", false);
    out[std::atoll(id.c_str())] = std::move(token);
  }
  return out;
}

NamedTokens named_tokens(const Value& config, const Value& map) {
  NamedTokens out;
  bool has_decoder = config.find("added_tokens_decoder");
  for (size_t i = 0; i < out.keys.size(); ++i) {
    const Value& from = has_decoder || !map.find(out.keys[i]) ? config : map;
    out.given[i] = from.find(out.keys[i]);
    out.tokens[i] = named_token(from, out.keys[i]);
  }
  return out;
}

// The configuration's list of special tokens without names; nullopt: none.
std::optional<std::vector<AddedToken>> more_special(const Value& config, const Value& map) {
  for (const Value* from : {&map, &config})
    for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
      const Value* list = from->find(key);
      if (!list || !list->is_list() || list->items.empty()) continue;
      if (from == &map && config.find("added_tokens_decoder")) continue;
      std::vector<AddedToken> out;
      for (const Value& item : list->items) {
        Value holder = Value::map();
        holder.set("token", item);
        if (auto token = named_token(holder, "token")) out.push_back(std::move(*token));
      }
      return out;
    }
  return std::nullopt;
}

// transformers 5 gives a LlamaTokenizer no normalizer, whatever its file says.
bool is_llama(const Value& config) {
  const Value* name = config.find("tokenizer_class");
  return name && (name->scalar == "LlamaTokenizer" || name->scalar == "LlamaTokenizerFast");
}

// Applies transformers' additions to a file's tokens: added_tokens_decoder overrides them; then the named and the other
// special tokens are added if they are in neither. The last of two with the same text wins.
void add_tokens(const Value& config, const NamedTokens& named, const std::vector<AddedToken>& special,
                TokenizerParts& parts) {
  std::vector<AddedToken> out;
  for (auto& [id, token] : decoder_of(config)) out.push_back(token);
  auto of_decoder = static_cast<std::ptrdiff_t>(out.size());
  auto add = [&](const AddedToken& token) {
    bool there = parts.added.token(token.content) ||
                 std::any_of(out.begin(), out.begin() + of_decoder,
                             [&](const AddedToken& one) { return one.content == token.content; });
    if (!there) out.push_back(token);
  };
  for (auto& token : named.tokens)
    if (token) add(*token);
  for (const AddedToken& token : special) add(token);
  parts.added.add(out, parts.model->vocabulary(),
                  is_llama(config) && !parts.byte_level ? nullptr : parts.normalizer.get());
}

// For files other than tokenizer.json, add_bos_token and add_eos_token replace the post-processor if the configuration
// has either (transformers 5).
void apply_bos_eos_rules(const Value& config, const TokenizerSettings& settings, const std::optional<AddedToken>& bos,
                         const std::optional<AddedToken>& eos, TokenizerParts& parts) {
  if (is_absent(config.find("add_bos_token")) && is_absent(config.find("add_eos_token"))) return;
  auto token = [&](std::string_view key, const std::optional<AddedToken>& named,
                   std::optional<TokenId> id) -> std::optional<SpecialToken> {
    if (!bool_field(config, key, false) || !named || !id) return std::nullopt;
    return SpecialToken{*id, named->content};
  };
  parts.post_processor =
      make_bos_eos(token("add_bos_token", bos, settings.bos), token("add_eos_token", eos, settings.eos));
}

// transformers 5 rebuilds the steps of a LlamaTokenizer (tokenization_llama.py): a blank is added only at the start of
// the text, not after each special token, unless 'legacy' is set. A byte-level file keeps its own steps.
void apply_llama_rules(const Value& config, TokenizerParts& parts) {
  if (!is_llama(config) || !parts.model->is_bpe() || parts.byte_level) return;
  bool prefix = bool_field(config, "add_prefix_space", true), legacy = bool_field(config, "legacy", false);
  parts.steps.normalizer.clear();
  parts.steps.missing.clear();
  Value metaspace = parse_json(R"({"type": "Metaspace", "replacement": "\u2581", "split": false})");
  metaspace.set("prepend_scheme", Value::text(!prefix ? "never" : legacy ? "always" : "first"));
  parts.normalizer = nullptr;
  parts.added.set_normalizer(nullptr);  // tokens that are marked as normalized are searched in the text as it is
  parts.pre_tokenizer = make_pre_tokenizer(metaspace);
  parts.cutter.reset();
  Value decoder = parse_json(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})");
  if (prefix)
    decoder.find("decoders")
        ->items.push_back(parse_json(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})"));
  parts.decoder = make_decoder(decoder);
  parts.steps.pre_tokenizer = to_json(metaspace);
  parts.steps.decoder = to_json(decoder);
}

constexpr const char* what_works =
    "give the folder of a tokenizer, or a tokenizer.json, tokenizer.model, *.tiktoken, tekken.json, vocab.txt or "
    "*.gguf";

std::vector<fs::path> files_ending(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> out;
  for (const fs::path& path : files::list(folder))
    if (path.filename().string().ends_with(ending)) out.push_back(path);
  return out;
}

// The tokenizer file of a folder; files with more than the vocabulary come first. Empty: none.
fs::path find_file(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.json.gz", "tekken.json", "tokenizer.model", "spiece.model",
                           "sentencepiece.bpe.model", "sentencepiece.model"})
    if (files::is_file(folder / name)) return folder / name;
  if (files::is_file(folder / "vocab.json") && files::is_file(folder / "merges.txt")) return folder / "vocab.json";
  if (files::is_file(folder / "vocab.txt")) return folder / "vocab.txt";
  for (const char* ending : {".tiktoken", ".model", ".gguf"})
    if (auto found = files_ending(folder, ending); !found.empty()) return found.front();
  return {};
}

fs::path tokenizer_file(const fs::path& folder) {
  if (fs::path found = find_file(folder); !found.empty()) return found;
  for (const auto& [there, other] : {std::pair("vocab.json", "merges.txt"), {"merges.txt", "vocab.json"}})
    if (files::is_file(folder / there))
      refuse((folder / there).string(), str("has no ", other, " next to it"), what_works);
  refuse(folder.string(), "has no tokenizer (tokenizer.json)", what_works);
}

// Refuses classes whose ids depend on more than their SentencePiece model.
void refuse_moved_ids(std::string_view type, const fs::path& file) {
  for (std::string_view name :
       {"XLMProphetNet", "M2M100", "LayoutXLM", "Marian", "Speech2Text", "Cpm", "PLBart", "Bartpho", "MLuke", "FNet"})
    if (type.starts_with(str(name, "Tokenizer")))
      refuse(file.string(), str("a ", type, " does more than its SentencePiece model says; that is not built yet"),
             "save it with transformers as tokenizer.json");
}

// True for tokenizer.json, whatever its name; also compressed.
bool holds_tokenizer_json(const fs::path& file) {
  std::string name = file.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (std::string_view other : {"tekken.json", "vocab.json", "tokenizer_config.json", "special_tokens_map.json"})
    if (name.ends_with(other)) return false;
  return name.ends_with(".json");
}

// `model`: config.json, which names the family if tokenizer_config.json does not name a class.
ReadTokenizer read_any(const fs::path& file, const Value& config, const Value& model, NamedTokens& named) {
  std::string name = file.filename().string(), where = file.string();
  const std::string family = string_field(model, "model_type", "");
  if (name.ends_with(".gguf")) return read_gguf(file);
  std::string bytes = files::read_compressed(file);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with("tekken.json")) return read_tekken(bytes, where);
  if (name == "vocab.json") {
    fs::path merges = file.parent_path() / "merges.txt";
    if (!files::is_file(merges)) refuse(where, "has no merges.txt next to it", what_works);
    return read_vocabulary_and_merges(bytes, files::read(merges), config, family, named, where);
  }
  if (name.ends_with(".json")) {
    ReadTokenizer out;
    out.parts = parse_tokenizer_json(bytes, where);
    apply_llama_rules(config, out.parts);
    return out;
  }
  if (name == "merges.txt") refuse(where, "is half of a tokenizer", "give its folder, or vocab.json next to it");
  if (name.ends_with(".txt"))
    return looks_like_rwkv(bytes) ? read_rwkv(bytes, where) : read_word_list(bytes, config, family, named, where);
  if (name.ends_with(".tiktoken") || looks_like_tiktoken(bytes)) return read_tiktoken(bytes, where);
  if (name.find(".model") == std::string::npos) refuse(where, "is not a tokenizer file", what_works);
  std::string type = string_field(config, "tokenizer_class", "");
  refuse_moved_ids(type, file);
  if (const SentencePieceClass* kind = sentencepiece_class(type, family))
    return read_sentencepiece_as(*kind, bytes, config, named, where);
  bool llama = type.starts_with("LlamaTokenizer") || type.starts_with("CodeLlamaTokenizer");
  ReadTokenizer out = read_sentencepiece(bytes, where, llama && !bool_field(config, "legacy", false));
  apply_llama_rules(config, out.parts);
  return out;
}

// Numbered after all others. transformers numbers them so, too.
void add_new_tokens(const std::vector<std::string>& contents, const fs::path& file, TokenizerParts& parts,
                    TokenizerSettings& settings) {
  if (contents.empty()) return;
  const std::string where = "lora.added_tokens";
  if (!holds_tokenizer_json(file))
    refuse(where, str("with a tokenizer in ", file.filename().string(), " is not built yet"),
           "give a folder with tokenizer.json (transformers' save_pretrained writes it)");
  std::vector<AddedToken> tokens;
  for (const std::string& content : contents) {
    if (parts.added.token(content) || parts.model->vocabulary().find(content) >= 0)
      refuse(where, "the tokenizer has '" + content + "' already",
             "leave it out; trainable_token_indices trains the rows of tokens that are there");
    AddedToken token;
    token.content = content;
    token.normalized = false;
    tokens.push_back(std::move(token));
  }
  parts.added.add(tokens, parts.model->vocabulary(), parts.normalizer.get());
  for (const std::string& content : contents) settings.new_tokens.push_back(parts.added.token(content)->id);
}

// The default tokens around a text of the class of a SentencePiece model's folder.
void add_class_rules(Value& config) {
  const Value* type = config.find("tokenizer_class");
  if (!type) return;
  bool begins = type->scalar.starts_with("LlamaTokenizer") || type->scalar.starts_with("CodeLlamaTokenizer") ||
                type->scalar.starts_with("GemmaTokenizer");
  if (begins && is_absent(config.find("add_bos_token"))) config.set("add_bos_token", Value::boolean(true));
}

}  // namespace

bool Tokenizer::exists(const fs::path& where) {
  return files::is_folder(where) ? !find_file(where).empty() : files::exists(where);
}

std::shared_ptr<const Tokenizer> Tokenizer::load(const fs::path& where, const std::optional<std::string>& chat_template,
                                                 const std::vector<std::string>& new_tokens) {
  bool is_folder = files::is_folder(where);
  if (!is_folder && !files::exists(where)) refuse(where.string(), "no such file or folder", what_works);
  fs::path file = is_folder ? tokenizer_file(where) : where;
  files::refuse_unfetched(file);
  // A vocabulary does not say how texts are split; the files next to it do.
  bool bare = file.filename() == "vocab.json" || file.filename() == "vocab.txt";
  TokenizerSettings settings;
  settings.files.push_back(file);
  settings.chat_template_is_given = chat_template.has_value();
  if (!is_folder && !bare) {
    NamedTokens named;
    ReadTokenizer read = read_any(file, Value::map(), Value::map(), named);
    settings.bos = read.bos;
    settings.eos = read.eos;
    settings.pad = read.pad;
    settings.unk = read.unk;
    settings.chat_template = chat_template ? chat_template : std::move(read.chat_template);
    add_new_tokens(new_tokens, file, read.parts, settings);
    return std::make_shared<JsonTokenizer>(std::move(read.parts), std::move(settings));
  }
  fs::path folder = is_folder ? where : where.parent_path();
  Value config = read_beside(folder / "tokenizer_config.json", settings.files);
  check_flags(config, folder / "tokenizer_config.json");
  Value map = read_beside(folder / "special_tokens_map.json", settings.files);
  std::vector<fs::path> not_copied;
  Value model = read_beside(folder / "config.json", not_copied);
  Value generation = read_beside(folder / "generation_config.json", not_copied);
  if (file.filename() == "vocab.json") settings.files.push_back(folder / "merges.txt");
  NamedTokens named = named_tokens(config, map);
  ReadTokenizer read = read_any(file, config, model, named);
  TokenizerParts parts = std::move(read.parts);
  if (file.filename().string().find(".model") != std::string::npos) add_class_rules(config);
  add_tokens(config, named, more_special(config, map).value_or(read.special), parts);
  add_new_tokens(new_tokens, file, parts, settings);
  auto id_of = [&](const std::optional<AddedToken>& token) -> std::optional<TokenId> {
    if (!token) return std::nullopt;
    if (const AddedToken* added = parts.added.token(token->content)) return added->id;
    TokenId id = parts.model->vocabulary().find(token->content);
    if (id < 0) return std::nullopt;
    return id;
  };
  auto settled = [&](NamedTokens::Key which, const char* key, std::optional<TokenId> of_file) {
    auto id = id_of(named.tokens[which]);
    if (!id) id = of_file;
    if (!id) id = id_in(generation, key);
    return id ? id : id_in(model, key);
  };
  settings.bos = settled(NamedTokens::bos, "bos_token_id", read.bos);
  settings.eos = settled(NamedTokens::eos, "eos_token_id", read.eos);
  settings.pad = settled(NamedTokens::pad, "pad_token_id", read.pad);
  settings.unk = id_of(named.tokens[NamedTokens::unk]);
  if (!settings.unk) settings.unk = read.unk;
  // If only the file names these tokens, its names are used.
  auto filled = [&](std::optional<AddedToken> token, std::optional<TokenId> id) {
    if (!token && id) token = special_token(parts.added.token(*id) ? parts.added.token(*id)->content : "");
    return token;
  };
  bool says_bos_or_eos = !is_absent(config.find("add_bos_token")) || !is_absent(config.find("add_eos_token"));
  if (read.frame && !(read.frame->yields && says_bos_or_eos)) {
    for (std::vector<FrameStep>* steps : {&read.frame->single, &read.frame->pair})
      for (FrameStep& step : *steps)
        if (step.text < 0) {
          // A language that is missing in the vocabulary is unknown, like any text.
          if (step.token.id >= 0) continue;
          step.token.id = id_of(special_token(step.token.content)).value_or(settings.unk.value_or(0));
          const AddedToken* added = parts.added.token(step.token.id);
          if (step.keeps_content) continue;
          step.token.content = added ? added->content : parts.model->vocabulary().token(step.token.id);
        }
    parts.post_processor = make_frame(*read.frame);
  } else if (!file.filename().string().starts_with("tokenizer.json")) {
    apply_bos_eos_rules(config, settings, filled(named.tokens[NamedTokens::bos], settings.bos),
                        filled(named.tokens[NamedTokens::eos], settings.eos), parts);
  }
  settings.decoding =
      class_decoding(string_field(config, "tokenizer_class", ""), string_field(model, "model_type", ""));
  // For byte pairs, transformers 5 does not change the text, whatever the configuration says.
  settings.clean_up = bool_field(config, "clean_up_tokenization_spaces", false) && !parts.model->is_bpe();
  fs::path jinja = folder / "chat_template.jinja";
  if (chat_template) {
    settings.chat_template = chat_template;
  } else if (files::is_file(jinja)) {
    settings.chat_template = files::read(jinja);
    settings.files.push_back(jinja);
  } else {
    settings.chat_template = template_in(config);
    if (!settings.chat_template) settings.chat_template = std::move(read.chat_template);
  }
  return std::make_shared<JsonTokenizer>(std::move(parts), std::move(settings));
}

void save_tokenizer(const Tokenizer& tokenizer, const fs::path& folder) {
  for (const fs::path& file : tokenizer.files()) {
    const bool gguf = file.extension() == ".gguf", json = holds_tokenizer_json(file);
    const fs::path to = folder / (gguf   ? fs::path(weights::vocabulary_file)
                                  : json ? fs::path("tokenizer.json")
                                         : file.filename());
    if (files::exists(to)) continue;
    if (gguf)
      weights::write_vocabulary(weights::GgufMetadata::open(file), to);
    else if (json && !tokenizer.new_tokens().empty())
      files::write(to, with_new_tokens(tokenizer, files::read_compressed(file)));
    else
      files::write(to, json ? files::read_compressed(file) : files::read(file));
  }
  if (tokenizer.chat_template_is_given()) files::write(folder / "chat_template.jinja", *tokenizer.chat_template());
  if (!files::exists(folder / "tokenizer.json")) write_tokenizer_json(tokenizer, folder);
}

}  // namespace easydel::text
