#include "easydel/text/tokenizers/write_json.h"

#include <algorithm>
#include <cctype>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;

std::string json_string(std::string_view text) { return to_json(Value::text(std::string(text))); }

// Steps may leave out fields that have defaults here; the package for tokenizer.json wants all of them.
Value completed(Value step) {
  static const Value defaults = parse_json(R"({
    "BertNormalizer": {"clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "Strip": {"strip_left": true, "strip_right": true}, "Digits": {"individual_digits": false},
    "ByteLevel": {"add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "Metaspace": {"replacement": "\u2581", "prepend_scheme": "always", "split": true},
    "Split": {"behavior": "Isolated", "invert": false}, "Punctuation": {"behavior": "Isolated"},
    "WordPiece": {"prefix": "##", "cleanup": true}, "BPEDecoder": {"suffix": "</w>"}})");
  const Value* const type = step.find("type");
  if (type && !(type->scalar == "Strip" && step.find("content")))  // the decoder of this name has other fields
    if (const Value* fields = defaults.find(type->scalar))
      for (const auto& [key, value] : fields->entries)
        if (!step.find(key)) step.set(key, value);
  for (const char* list : {"normalizers", "pretokenizers", "decoders", "processors"})
    if (Value* const inner = step.find(list))
      for (Value& each : inner->items) each = completed(std::move(each));
  return step;
}

Value added_json(const AddedToken& token) {
  Value out = Value::map();
  out.set("id", Value::integer(token.id));
  out.set("content", Value::text(token.content));
  out.set("single_word", Value::boolean(token.single_word));
  out.set("lstrip", Value::boolean(token.lstrip));
  out.set("rstrip", Value::boolean(token.rstrip));
  out.set("normalized", Value::boolean(token.normalized));
  out.set("special", Value::boolean(token.special));
  return out;
}

Value added_tokens_json(const TokenizerParts& parts) {
  std::vector<AddedToken> tokens = parts.added.all();
  for (AddedToken token : parts.steps.added) {
    token.id = parts.model->vocabulary().find(token.content);
    if (token.id >= 0 && !parts.added.token(token.id)) tokens.push_back(std::move(token));
  }
  std::stable_sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  Value out = Value::list();
  for (const AddedToken& token : tokens) out.items.push_back(added_json(token));
  return out;
}

// The model's section is written as text: as values, a large vocabulary would take hundreds of megabytes.
std::string model_json(const Model& model) {
  const ModelSection section = model.section();
  const Vocabulary& vocabulary = model.vocabulary();
  const bool is_list = section.options.find("type")->scalar == "Unigram";
  std::string out = to_json(section.options, 1);
  out.resize(out.rfind('}'));
  while (out.ends_with('\n') || out.ends_with(' ')) out.pop_back();
  out += str(",\n \"vocab\": ", is_list ? '[' : '{');
  const char* between = "\n  ";
  for (size_t i = 0; i < vocabulary.id_limit(); ++i) {
    const auto id = static_cast<TokenId>(i);
    // Added tokens are numbered from the size of the vocabulary on, so it must not have gaps.
    const bool is_there = vocabulary.has(id) && (is_list || vocabulary.find(vocabulary.token(id)) == id);
    const std::string token = is_there ? std::string(vocabulary.token(id)) : str("[NO_TOKEN_", id, "]");
    if (is_list && i >= section.scores.size()) break;
    if (is_list)
      out += str(between, '[', json_string(token), ", ", to_json(Value::number(section.scores[i])), ']');
    else
      out += str(between, json_string(token), ": ", id);
    between = ",\n  ";
  }
  out += is_list ? "\n ]" : "\n }";
  if (section.options.find("type")->scalar != "BPE") return out + "\n}";
  out += ",\n \"merges\": [";
  between = "\n  ";
  for (const auto& [left, right] : section.merges) {
    out += str(between, '[', json_string(vocabulary.token(left)), ", ", json_string(vocabulary.token(right)), ']');
    between = ",\n  ";
  }
  return out + "\n ]\n}";
}

// Texts on which tokenizers differ if any of their steps does.
std::vector<std::string> probes_of(const Tokenizer& tokenizer) {
  std::vector<std::string> out = {
      "",
      "hello",
      "Hello world",
      "two  blanks   three\ttab\nline\r\n\n  indented",
      "end ",
      "end  \n",
      "\n\nstart",
      "it's we'll I'M DON'T they'Re",
      "1 12 123 1234 12345678 3.14 1,000",
      "a.b,c!d?e;f:g(h)[i]{j}<k>\"l\" ...!!! --- ###",
      "for (int i = 0; i < n; ++i) {\n\treturn x_1 + y;\n}",
      "na\u00efve caf\u00e9 cafe\u0301 \u00c5ngstr\u00f6m \u212b \u1e9e",
      "\uff21\uff22\uff23 \ufb01ne \u00bd \u2460 \u2122",
      "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0 \u4e2d\u6587 \ud55c\uad6d\uc5b4",
      "\u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u03b5\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u05e2\u05d1",
      "\u0645\u0631\u062d\u0628\u0627 \u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22",
      "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
      "a\u00a0b\u200bc\u2028d\u3000e\ufefff",
      "\u0001\u0007\u001b[0m\u007f",
      "supercalifragilisticexpialidocious antidisestablishmentarianism",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      " one blank before",
      "   three blanks before"};
  // The first and the last added tokens, within a text and at its ends.
  std::vector<TokenId> added;
  for (TokenId id = 0; id < tokenizer.id_limit(); ++id)
    if (tokenizer.is_special(id)) added.push_back(id);
  if (added.size() > 8) added.erase(added.begin() + 4, added.end() - 4);
  for (const TokenId id : added) {
    const std::string token = tokenizer.token_of(id);
    for (const std::string& text : {str("a", token, "b"), str("a ", token, " b c"), str(token, "x", token)})
      out.push_back(text);
  }
  return out;
}

}  // namespace

std::string tokenizer_json(const TokenizerParts& parts) {
  if (!parts.steps.missing.empty()) refuse("tokenizer.json", parts.steps.missing);
  const auto step = [](const std::string& text) {
    return text.empty() ? std::string("null") : to_json(completed(parse_json(text)));
  };
  return str("{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n\"added_tokens\": ",
             to_json(added_tokens_json(parts), 1), ",\n\"normalizer\": ", step(parts.steps.normalizer),
             ",\n\"pre_tokenizer\": ", step(parts.steps.pre_tokenizer),
             ",\n\"post_processor\": ", parts.post_processor ? to_json(parts.post_processor->as_json()) : "null",
             ",\n\"decoder\": ", step(parts.steps.decoder), ",\n\"model\": ", model_json(*parts.model), "\n}\n");
}

// The text is spliced: as values, a large vocabulary would take hundreds of megabytes.
std::string with_new_tokens(const Tokenizer& tokenizer, const std::string& json) {
  std::string entries;
  for (const TokenId id : tokenizer.new_tokens()) {
    AddedToken token;
    token.id = id;
    token.content = tokenizer.token_of(id);
    token.normalized = false;
    entries += str(entries.empty() ? "" : ",", "\n    ", to_json(added_json(token)));
  }
  // The end of the list under the key of the outermost object.
  const std::string key = "\"added_tokens\"";
  int depth = 0;
  bool in_list = false;
  size_t last = std::string::npos;  // the last character of the list that is not blank
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') {
      const size_t begin = at;
      while (json[++at] != '"')
        if (json[at] == '\\') ++at;
      if (depth == 1 && !in_list && json.compare(begin, at + 1 - begin, key) == 0) in_list = true;
      last = at;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (in_list && depth == 1 && c == ']')
      return str(json.substr(0, last + 1), json[last] == '[' ? "" : ",", entries, "\n  ", json.substr(at));
    if (!std::isspace(static_cast<unsigned char>(c))) last = at;
  }
  const size_t begin = json.find('{');
  return str(json.substr(0, begin + 1), "\n  ", key, ": [", entries, "\n  ],", json.substr(begin + 1));
}

std::string tokenizer_config_json(const Tokenizer& tokenizer, const std::string& given) {
  const bool is_new = given.empty();
  Value out =
      is_new ? parse_json(R"({"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false})")
             : parse_json(given, "tokenizer_config.json");
  bool changed = is_new;
  const auto name = [&](const char* key, std::optional<TokenId> id) {
    // Loaders make special tokens of what is named here.
    if (!id || !tokenizer.is_special(*id) || out.find(key)) return;
    out.set(key, Value::text(tokenizer.token_of(*id)));
    changed = true;
  };
  name("bos_token", tokenizer.bos_id());
  name("eos_token", tokenizer.eos_id());
  name("unk_token", tokenizer.unk_id());
  name("pad_token", tokenizer.pad_id());
  if (const auto source = tokenizer.chat_template(); source && is_new) out.set("chat_template", Value::text(*source));
  return changed ? to_json(out, 2) + "\n" : given;
}

std::optional<std::string> first_difference(const Tokenizer& one, const Tokenizer& other) {
  for (const std::string& text : probes_of(one))
    for (const bool special : {false, true}) {
      const std::vector<TokenId> ids = one.encode(text, {.add_special_tokens = special});
      if (ids != other.encode(text, {.add_special_tokens = special})) return text;
      if (one.decode(ids, special) != other.decode(ids, special)) return text;
    }
  return std::nullopt;
}

void write_tokenizer_json(const Tokenizer& tokenizer, const fs::path& folder) {
  const fs::path json = folder / "tokenizer.json", config = folder / "tokenizer_config.json";
  const auto warn = [&](std::string_view reason) {
    log::warning(json.string(), " is not written: ", tokenizer.files().front().filename().string(), " ", reason,
                 "; programs that load only tokenizer.json cannot load this tokenizer");
  };
  std::string text;
  try {
    text = tokenizer.as_json();
  } catch (const UserError& error) {
    return warn(error.problem);
  }
  const std::string before = files::exists(config) ? files::read(config) : "";
  const std::string after = tokenizer_config_json(tokenizer, before);
  // Read back elsewhere: what is written into a checkpoint stays there.
  const struct Aside {
    fs::path path = files::make_temporary_folder("easydel-tokenizer");
    ~Aside() {
      try {
        files::remove_all(path);
      } catch (const UserError&) {  // a temporary folder that stays does no harm
      }
    }
  } aside;
  files::write(aside.path / "tokenizer.json", text);
  files::write(aside.path / "tokenizer_config.json", after);
  for (const char* name : {"special_tokens_map.json", "chat_template.jinja", "config.json", "generation_config.json"})
    if (files::is_file(folder / name)) files::write(aside.path / name, files::read(folder / name));
  if (const auto differs = first_difference(tokenizer, *Tokenizer::load(aside.path)))
    return warn(
        str("encodes or decodes the text ", json_string(*differs), " in a way that tokenizer.json cannot express"));
  files::write(json, text);
  if (after != before) files::write(config, after);
}

}  // namespace easydel::text
