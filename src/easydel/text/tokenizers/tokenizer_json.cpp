// Reads tokenizer.json: the large vocabulary directly from the parser, everything else as documents for the parts.
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/simdjson.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/json_scores.h"
#include "easydel/text/tokenizers/json_tokenizer.h"

namespace easydel::text {
namespace {

namespace dom = simdjson::dom;

Value to_value(dom::element element) {
  switch (element.type()) {
    case dom::element_type::ARRAY: {
      Value out = Value::list();
      for (dom::element item : dom::array(element)) out.items.push_back(to_value(item));
      return out;
    }
    case dom::element_type::OBJECT: {
      Value out = Value::map();
      for (auto [key, item] : dom::object(element)) out.entries.emplace_back(key, to_value(item));
      return out;
    }
    case dom::element_type::STRING:
      return Value::text(std::string(std::string_view(element)));
    case dom::element_type::BOOL:
      return Value::boolean(bool(element));
    case dom::element_type::INT64:
      return Value::integer(int64_t(element));
    case dom::element_type::UINT64:
      return Value::number(double(uint64_t(element)));
    case dom::element_type::DOUBLE:
      return Value::number(double(element));
    case dom::element_type::NULL_VALUE:
      break;
  }
  return Value();
}

void read_vocabulary(dom::element vocab, ModelData& out) {
  if (dom::array list; !vocab.get_array().get(list)) {  // Unigram: [token, score] in the order of ids
    for (dom::element row : list) {
      std::string_view token;
      double score = 0;
      if (row.at(0).get_string().get(token) || row.at(1).get_double().get(score))
        refuse("tokenizer.json", str("row ", out.scores.size(), " of the vocabulary is not a pair of token and score"),
               fetch_tokenizer_again);
      out.vocabulary.add(token, static_cast<TokenId>(out.scores.size()));
      out.scores.push_back(score);
    }
    return;
  }
  dom::object map;
  if (vocab.get_object().get(map))
    refuse("tokenizer.json", "'model.vocab' is neither a map nor a list", fetch_tokenizer_again);
  out.vocabulary.reserve(map.size(), map.size() * 8);
  // Several at a time, so that memory latencies overlap: the table is larger than the caches.
  struct Row {
    std::string_view token;
    uint64_t hash;
    TokenId id;
  };
  std::array<Row, 32> rows;
  size_t count = 0;
  auto add = [&] {
    for (size_t i = 0; i < count; ++i) out.vocabulary.add(rows[i].token, rows[i].id, rows[i].hash);
    count = 0;
  };
  for (auto [token, id] : map) {
    int64_t number = 0;
    if (id.get_int64().get(number) || number < 0 || number >= 1 << 24)
      refuse("tokenizer.json", str("the token '", token, "' has no id from 0 to ", (1 << 24) - 1),
             fetch_tokenizer_again);
    rows[count] = {token, hash_of(token), static_cast<TokenId>(number)};
    out.vocabulary.prefetch_slot(rows[count].hash);
    if (++count == rows.size()) add();
  }
  add();
}

void read_merges(dom::element merges, ModelData& out) {
  dom::array list;
  if (merges.get_array().get(list)) refuse("tokenizer.json", "'model.merges' is not a list", fetch_tokenizer_again);
  out.merges.reserve(list.size());
  for (dom::element row : list) {
    std::string_view left, right, both;
    if (!row.get_string().get(both)) {
      size_t blank = both.find(' ');
      if (blank == std::string_view::npos || both.find(' ', blank + 1) != std::string_view::npos)
        refuse("tokenizer.json", str("merge ", out.merges.size(), " ('", both, "') is not two tokens"),
               fetch_tokenizer_again);
      out.merges.emplace_back(both.substr(0, blank), both.substr(blank + 1));
    } else if (dom::array pair; !row.get_array().get(pair) && pair.size() == 2 && !pair.at(0).get_string().get(left) &&
                                !pair.at(1).get_string().get(right)) {
      out.merges.emplace_back(left, right);
    } else {
      refuse("tokenizer.json", str("merge ", out.merges.size(), " is not two tokens"), fetch_tokenizer_again);
    }
  }
}

std::string kind_of(const Value& options, const ModelData& data, bool has_merges) {
  std::string type = string_field(options, "type", "");
  if (!type.empty()) return type;
  if (has_merges) return "BPE";
  if (!data.scores.empty()) return "Unigram";
  return options.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

std::unique_ptr<const Model> read_model(dom::element model, bool byte_level, const simdjson::padded_string& json) {
  dom::object fields;
  if (model.get_object().get(fields)) refuse("tokenizer.json", "'model' is not an object", fetch_tokenizer_again);
  Value options = Value::map();
  ModelData data;
  bool has_vocabulary = false, has_merges = false;
  for (auto [key, value] : fields) {
    if (key == "vocab") {
      read_vocabulary(value, data);
      has_vocabulary = true;
    } else if (key == "merges") {
      read_merges(value, data);
      has_merges = true;
    } else {
      options.entries.emplace_back(key, to_value(value));
    }
  }
  if (!has_vocabulary) refuse("tokenizer.json", "the model has no 'vocab'", fetch_tokenizer_again);
  std::string type = kind_of(options, data, has_merges);
  if (type == "BPE") {
    if (!has_merges) refuse("tokenizer.json", "the BPE model has no 'merges'", fetch_tokenizer_again);
    return make_bpe(options, std::move(data), byte_level);
  }
  if (type == "WordPiece") return make_word_piece(options, std::move(data));
  if (type == "WordLevel") return make_word_level(options, std::move(data));
  if (type == "Unigram") {
    std::vector<double> scores = read_scores(json);
    if (scores.size() != data.scores.size())
      refuse("tokenizer.json", "'model.vocab' is not a list of pairs", fetch_tokenizer_again);
    data.scores = std::move(scores);
    return make_unigram(options, std::move(data));
  }
  refuse("tokenizer.json", "the model '" + type + "' is not known", "known: BPE, Unigram, WordPiece, WordLevel");
}

std::vector<AddedToken> read_added(const Value& list) {
  if (!list.is_list()) refuse("tokenizer.json", "'added_tokens' is not a list", fetch_tokenizer_again);
  std::vector<AddedToken> out;
  for (const Value& item : list.items) {
    AddedToken token;
    token.content = string_field(item, "content");
    token.id = static_cast<TokenId>(int_field(item, "id", -1));
    token.special = bool_field(item, "special", false);
    token.normalized = bool_field(item, "normalized", !token.special);
    token.single_word = bool_field(item, "single_word", false);
    token.lstrip = bool_field(item, "lstrip", false);
    token.rstrip = bool_field(item, "rstrip", false);
    out.push_back(std::move(token));
  }
  return out;
}

}  // namespace

TokenizerParts parse_tokenizer_json(std::string_view json, const std::string& name) {
  dom::parser parser;
  simdjson::padded_string padded(json);
  dom::object document;
  auto error = parser.parse(padded).get_object().get(document);
  if (error == simdjson::INCORRECT_TYPE) refuse(name, "is not a JSON object", fetch_tokenizer_again);
  if (error) refuse(name, str("is not valid JSON: ", simdjson::error_message(error)), fetch_tokenizer_again);
  TokenizerParts parts;
  Value added = Value::list();
  std::optional<dom::element> model;
  bool& byte_level = parts.byte_level;
  try {
    for (auto [key, element] : document) {
      if (key == "model") {
        model = element;
        continue;
      }
      if (key != "normalizer" && key != "pre_tokenizer" && key != "post_processor" && key != "decoder" &&
          key != "added_tokens" && key != "truncation" && key != "padding")
        continue;
      Value value = to_value(element);
      if (value.is_null()) continue;
      if (key == "added_tokens") {
        added = std::move(value);
      } else if (key == "truncation") {
        parts.truncation = read_truncation(value);
      } else if (key == "padding") {
        parts.padding = read_padding(value);
      } else if (key == "normalizer") {
        parts.normalizer = make_normalizer(value);
        byte_level = byte_level || parts.normalizer->makes_byte_level();
      } else if (key == "pre_tokenizer") {
        parts.pre_tokenizer = make_pre_tokenizer(value);
        parts.cutter = make_cutter(value);
        byte_level = byte_level || parts.pre_tokenizer->makes_byte_level();
      } else if (key == "post_processor") {
        parts.post_processor = make_post_processor(value);
      } else {
        parts.decoder = make_decoder(value);
      }
    }
    if (!model) refuse("tokenizer.json", "has no 'model'", "is it the file of a tokenizer?");
    parts.model = read_model(*model, byte_level, padded);
    if (!parts.pre_tokenizer) parts.cutter = Cutter{};
    parts.added.add(read_added(added), parts.model->vocabulary(), parts.normalizer.get());
  } catch (const UserError& error) {
    rethrow_at(name, error);
  }
  return parts;
}

}  // namespace easydel::text
