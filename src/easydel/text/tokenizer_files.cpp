// Finding a tokenizer's files, and what stands beside tokenizer.json: special tokens, BOS and EOS rules, the template.
#include <algorithm>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/text/json_fields.h"
#include "easydel/text/json_tokenizer.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;

// The JSON object in `path`; an empty one where there is no such file.
Value read_beside(const fs::path& path, std::vector<fs::path>& read) {
  if (!fs::is_regular_file(path)) return Value::map();
  Value out = parse_json(files::read(path), path.string());
  if (!out.is_map()) refuse(path.string(), "is no JSON object", "fetch the tokenizer again");
  read.push_back(path);
  return out;
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

// An id, or the first of a list of ids, as config.json and generation_config.json write them.
std::optional<TokenId> id_in(const Value& config, std::string_view key) {
  const Value* value = config.find(key);
  if (value && value->is_list() && !value->items.empty()) value = &value->items[0];
  if (!value) return std::nullopt;
  auto id = value->as_int();
  if (!id || *id < 0 || *id > INT32_MAX) return std::nullopt;
  return static_cast<TokenId>(*id);
}

// Tokens that only tokenizer_config.json knows: its added_tokens_decoder in the order of ids, then the named ones.
std::vector<AddedToken> tokens_of_config(const Value& config, const std::vector<std::optional<AddedToken>>& named) {
  std::map<int64_t, AddedToken> by_id;
  if (const Value* decoder = config.find("added_tokens_decoder"); decoder && decoder->is_map())
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
      by_id[std::atoll(id.c_str())] = std::move(token);
    }
  std::vector<AddedToken> out;
  for (auto& [id, token] : by_id) out.push_back(std::move(token));
  for (auto& token : named)
    if (token) out.push_back(*token);
  return out;
}

// add_bos_token and add_eos_token replace the file's post-processor wherever the config says either (transformers 5).
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

// transformers 5 builds a LlamaTokenizer's steps anew (tokenization_llama.py): the blank before a text is put where the
// text begins, and not after each special token, unless 'legacy' is set. A byte-level file keeps its own steps.
void apply_llama_rules(const Value& config, TokenizerParts& parts) {
  const Value* name = config.find("tokenizer_class");
  bool llama = name && (name->scalar == "LlamaTokenizer" || name->scalar == "LlamaTokenizerFast");
  if (!llama || !parts.model->is_bpe() || parts.byte_level) return;
  bool prefix = bool_field(config, "add_prefix_space", true), legacy = bool_field(config, "legacy", false);
  Value metaspace = parse_json(R"({"type": "Metaspace", "replacement": "\u2581", "split": false})");
  metaspace.set("prepend_scheme", Value::text(!prefix ? "never" : legacy ? "always" : "first"));
  parts.normalizer = nullptr;
  parts.pre_tokenizer = make_pre_tokenizer(metaspace);
  parts.cutter.reset();
  Value decoder = parse_json(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})");
  if (prefix)
    decoder.find("decoders")
        ->items.push_back(parse_json(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})"));
  parts.decoder = make_decoder(decoder);
}

fs::path tokenizer_file(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.json.gz"})
    if (fs::is_regular_file(folder / name)) return folder / name;
  for (const char* name : {"tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json"})
    if (fs::exists(folder / name))
      refuse(folder.string(), str("has ", name, " and no tokenizer.json; a tokenizer of that form is not built yet"),
             "save it with transformers as tokenizer.json");
  refuse(folder.string(), "has no tokenizer (tokenizer.json)", "give the folder of a tokenizer, or a tokenizer.json");
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::load(const fs::path& where) {
  bool is_folder = fs::is_directory(where);
  if (!is_folder && !fs::exists(where))
    refuse(where.string(), "no such file or folder", "give the folder of a tokenizer, or a tokenizer.json");
  fs::path file = is_folder ? tokenizer_file(where) : where;
  std::string name = file.filename().string();
  if (!name.ends_with(".json") && !name.ends_with(".json.gz"))
    refuse(file.string(), "a tokenizer of this form is not built yet", "give a tokenizer.json");
  TokenizerParts parts = parse_tokenizer_json(files::read_compressed(file), file.string());
  TokenizerSettings settings;
  settings.files.push_back(file);
  if (!is_folder) return std::make_shared<JsonTokenizer>(std::move(parts), std::move(settings));

  fs::path folder = where;
  Value config = read_beside(folder / "tokenizer_config.json", settings.files);
  Value map = read_beside(folder / "special_tokens_map.json", settings.files);
  std::vector<fs::path> not_copied;
  Value model = read_beside(folder / "config.json", not_copied);
  Value generation = read_beside(folder / "generation_config.json", not_copied);
  apply_llama_rules(config, parts);
  std::vector<std::optional<AddedToken>> named;
  for (const char* key : {"bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"}) {
    auto token = named_token(config, key);
    if (!token && !config.find(key)) token = named_token(map, key);
    named.push_back(std::move(token));
  }
  parts.added.add(tokens_of_config(config, named), parts.model->vocabulary(), parts.normalizer.get());
  auto id_of = [&](const std::optional<AddedToken>& token) -> std::optional<TokenId> {
    if (!token) return std::nullopt;
    if (const AddedToken* added = parts.added.token(token->content)) return added->id;
    TokenId id = parts.model->vocabulary().find(token->content);
    if (id < 0) return std::nullopt;
    return id;
  };
  auto settled = [&](size_t index, const char* key) {
    auto id = id_of(named[index]);
    if (!id) id = id_in(generation, key);
    return id ? id : id_in(model, key);
  };
  settings.bos = settled(0, "bos_token_id");
  settings.eos = settled(1, "eos_token_id");
  settings.pad = settled(2, "pad_token_id");
  settings.unk = id_of(named[3]);
  apply_bos_eos_rules(config, settings, named[0], named[1], parts);
  // Where the model is byte pairs, transformers 5 leaves the text alone whatever the config says.
  settings.clean_up = bool_field(config, "clean_up_tokenization_spaces", false) && !parts.model->is_bpe();
  fs::path jinja = folder / "chat_template.jinja";
  if (fs::is_regular_file(jinja)) {
    settings.chat_template = files::read(jinja);
    settings.files.push_back(jinja);
  } else {
    settings.chat_template = template_in(config);
  }
  return std::make_shared<JsonTokenizer>(std::move(parts), std::move(settings));
}

}  // namespace easydel::text
