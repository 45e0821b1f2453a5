// tiktoken's vocabularies and Mistral's tekken.json: bytes and their ranks; the pair with the lowest rank merges first.
#include <algorithm>
#include <charconv>

#include "easydel/base/error.h"
#include "easydel/base/simdjson.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/json_fields.h"

namespace easydel::text {
namespace {

constexpr int64_t max_tokens = 1 << 24;

struct Family {
  std::string_view name;  // a part of the file's name
  int64_t ranks;          // number of ranks; 0: several sizes
  std::string_view pattern;
  std::vector<std::pair<std::string, TokenId>> special;
  std::string bos = {}, eos = {};
};

std::vector<std::pair<std::string, TokenId>> llama3_special() {
  std::vector<std::string> names = {"<|begin_of_text|>", "<|end_of_text|>"};
  for (int i = 0; i < 4; ++i) names.push_back(str("<|reserved_special_token_", i, "|>"));
  names.insert(names.end(), {"<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"});
  for (int i = 5; i < 251; ++i) names.push_back(str("<|reserved_special_token_", i, "|>"));
  std::vector<std::pair<std::string, TokenId>> out;
  for (std::string& name : names) out.emplace_back(std::move(name), 128000 + static_cast<TokenId>(out.size()));
  return out;
}

const Family& family_of(const std::string& name, int64_t ranks) {
  static const std::vector<Family> known = {
      {"o200k", 199998, o200k_pattern, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}, "", "<|endoftext|>"},
      {"cl100k",
       100256,
       cl100k_pattern,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}},
       "",
       "<|endoftext|>"},
      {"p50k", 50280, gpt2_pattern, {{"<|endoftext|>", 50256}}, "", "<|endoftext|>"},
      {"r50k", 50256, gpt2_pattern, {{"<|endoftext|>", 50256}}, "", "<|endoftext|>"},
      {"gpt2", 50256, gpt2_pattern, {{"<|endoftext|>", 50256}}, "", "<|endoftext|>"},
      {"multilingual",
       50257,
       gpt2_pattern,
       {{"<|endoftext|>", 50257}, {"<|startoftranscript|>", 50258}},
       "",
       "<|endoftext|>"},
      {"qwen",
       151643,
       qwen2_pattern,
       {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}},
       "",
       "<|endoftext|>"},
      {"llama3", 128000, cl100k_pattern, llama3_special(), "<|begin_of_text|>", "<|end_of_text|>"},
      {"", 0, cl100k_pattern, {}, "", ""}};
  for (const Family& family : known)
    if (!family.name.empty() && name.find(family.name) != std::string::npos) return family;
  for (const Family& family : known)
    if (family.ranks == ranks) return family;
  return known.back();
}

ReadTokenizer with_ranks(Vocabulary vocabulary, std::vector<uint32_t> ranks, const std::string& pattern,
                         const std::vector<AddedToken>& special) {
  ReadTokenizer out;
  ModelData data;
  data.vocabulary = std::move(vocabulary);
  TextBpeRules rules;
  rules.mapped_bytes = true;
  rules.whole_first = true;
  rules.ranks = std::move(ranks);
  set_byte_level(out.parts, {pattern});
  out.parts.model = make_text_bpe(std::move(rules), std::move(data));
  out.parts.added.add(special, out.parts.model->vocabulary(), nullptr);
  return out;
}

}  // namespace

bool looks_like_tiktoken(std::string_view bytes) {
  std::string_view line = bytes.substr(0, bytes.find('\n'));
  while (line.ends_with('\r')) line.remove_suffix(1);
  size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 >= line.size() || line.size() > 4096) return false;
  auto is_code = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/' || c == '='; };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(space), is_code) &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(space) + 1, line.end(), is_digit);
}

ReadTokenizer read_tiktoken(std::string_view bytes, const std::string& name) {
  Vocabulary vocabulary;
  vocabulary.reserve(bytes.size() / 18, bytes.size() / 2);
  int64_t number = 0, ranks = 0;
  for (size_t begin = 0; begin < bytes.size(); ++number) {
    size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    size_t space = line.find(' ');
    int64_t rank = -1;
    if (space != std::string_view::npos) std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (rank < 0 || rank >= max_tokens)
      refuse(name, str("line ", number + 1, " is not base64, a space and a rank below ", max_tokens),
             fetch_tokenizer_again);
    std::string token;
    try {
      token = decode_base64(line.substr(0, space));
    } catch (const UserError&) {
      refuse(name, str("line ", number + 1, " is not base64, a space and a rank below ", max_tokens),
             fetch_tokenizer_again);
    }
    if (token.empty()) continue;  // Whisper's multilingual file has such a line
    vocabulary.add(map_bytes(token), static_cast<TokenId>(rank));
    ++ranks;
  }
  if (!ranks) refuse(name, "has no ranks", fetch_tokenizer_again);
  std::string file = std::filesystem::path(name).filename().string();
  const Family& family = family_of(file, ranks);
  std::vector<AddedToken> special;
  std::vector<uint32_t> order;
  for (auto& [content, id] : family.special)
    if (!vocabulary.has(id)) {
      vocabulary.add(content, id);
      special.push_back(special_token(content, id));
    }
  for (size_t id = 0; id < vocabulary.id_limit(); ++id) order.push_back(uint32_t(id));
  for (const AddedToken& token : special) order[size_t(token.id)] = UINT32_MAX;
  ReadTokenizer out = with_ranks(std::move(vocabulary), std::move(order), std::string(family.pattern), special);
  auto id_of = [&](const std::string& content) -> std::optional<TokenId> {
    const AddedToken* token = content.empty() ? nullptr : out.parts.added.token(content);
    return token ? std::optional(token->id) : std::nullopt;
  };
  out.bos = id_of(family.bos);
  out.eos = id_of(family.eos);
  if (out.bos) out.parts.post_processor = make_bos_eos(SpecialToken{*out.bos, family.bos}, std::nullopt);
  return out;
}

ReadTokenizer read_tekken(std::string_view json, const std::string& name) {
  simdjson::dom::parser parser;
  simdjson::padded_string padded(json);
  simdjson::dom::element root;
  if (auto error = parser.parse(padded).get(root))
    refuse(name, str("is not valid JSON: ", simdjson::error_message(error)), fetch_tokenizer_again);
  std::string_view pattern;
  int64_t size = 0, special_count = 0;
  simdjson::dom::array vocab;
  if (root["config"]["pattern"].get_string().get(pattern) ||
      root["config"]["default_vocab_size"].get_int64().get(size) ||
      root["config"]["default_num_special_tokens"].get_int64().get(special_count) ||
      root["vocab"].get_array().get(vocab) || special_count < 0 || size <= special_count || size > max_tokens)
    refuse(name, "lacks its 'config' (pattern, default_vocab_size, default_num_special_tokens) or its 'vocab'",
           fetch_tokenizer_again);
  Vocabulary vocabulary;
  std::vector<uint32_t> ranks(size_t(size), UINT32_MAX);
  for (simdjson::dom::element row : vocab) {
    int64_t rank = -1;
    std::string_view code;
    if (row["rank"].get_int64().get(rank) || row["token_bytes"].get_string().get(code) || rank < 0 ||
        rank >= max_tokens)
      refuse(name, "has a row of 'vocab' without a 'rank' and 'token_bytes'", fetch_tokenizer_again);
    if (rank >= size - special_count) continue;  // past the size that the model uses
    auto id = static_cast<TokenId>(rank + special_count);
    vocabulary.add(map_bytes(decode_base64(code)), id);
    ranks[size_t(id)] = uint32_t(rank);
  }
  auto names = std::vector<std::string>(size_t(special_count));
  simdjson::dom::array list;
  if (!root["special_tokens"].get_array().get(list)) {
    for (simdjson::dom::element row : list) {
      int64_t rank = -1;
      std::string_view content;
      if (!row["rank"].get_int64().get(rank) && !row["token_str"].get_string().get(content) && rank >= 0 &&
          rank < special_count)
        names[size_t(rank)] = content;
    }
  } else {
    // Files of the first version have no special tokens; these are Mistral NeMo's.
    const char* first[] = {"<unk>",
                           "<s>",
                           "</s>",
                           "[INST]",
                           "[/INST]",
                           "[AVAILABLE_TOOLS]",
                           "[/AVAILABLE_TOOLS]",
                           "[TOOL_RESULTS]",
                           "[/TOOL_RESULTS]",
                           "[TOOL_CALLS]",
                           "[IMG]",
                           "<pad>",
                           "[IMG_BREAK]",
                           "[IMG_END]",
                           "[PREFIX]",
                           "[MIDDLE]",
                           "[SUFFIX]",
                           "[SYSTEM_PROMPT]",
                           "[/SYSTEM_PROMPT]",
                           "[TOOL_CONTENT]"};
    for (size_t i = 0; i < names.size() && i < std::size(first); ++i) names[i] = first[i];
  }
  std::vector<AddedToken> special;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = str("<SPECIAL_", i, ">");
    vocabulary.add(names[i], static_cast<TokenId>(i));
    special.push_back(special_token(names[i], static_cast<TokenId>(i)));
  }
  ReadTokenizer out = with_ranks(std::move(vocabulary), std::move(ranks), std::string(pattern), special);
  auto id_of = [&](const char* content) -> std::optional<TokenId> {
    const AddedToken* token = out.parts.added.token(content);
    return token ? std::optional(token->id) : std::nullopt;
  };
  out.bos = id_of("<s>");
  out.eos = id_of("</s>");
  out.pad = id_of("<pad>");
  out.unk = id_of("<unk>");
  if (out.bos) out.parts.post_processor = make_bos_eos(SpecialToken{*out.bos, "<s>"}, std::nullopt);
  return out;
}

}  // namespace easydel::text
