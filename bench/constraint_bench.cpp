// Masks of constrained output: constraint_bench --tokenizer FOLDER [--pairs 5]. Seconds to compile a schema of 4 KB,
// and of the masks before the tokens of a text that follows it and of the same text once more, for a vocabulary of 128k
// (Llama 3's tokenizer); and of those of a constraint that has learned ahead, as the engine lets it while the first
// pass runs. With the Python of EASYDEL_PEER_PYTHON, in turns with xgrammar, which gets the same schema, vocabulary and
// tokens (bench/constraint_peer.py).
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/text/constrain/constraint.h"
#include "measure.h"
#include "peer.h"

namespace easydel::bench {
namespace {

using namespace text::constrain;

// Every kind of value, in records that refer to each other. `salt` makes its strings others.
std::string schema_of(const std::string& salt) {
  std::string properties, required;
  for (int i = 0; i < 15; ++i) {
    const std::string name = "field_" + salt + std::to_string(i);
    const char* const kinds[] = {
        R"({"type": "string", "minLength": 1, "maxLength": 40})",
        R"({"type": "integer", "minimum": -1000, "maximum": 100000})",
        R"({"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 6})",
        R"({"enum": ["red", "green", "blue", "a longer choice", "another one"]})",
        R"({"type": "object", "properties": {"street": {"type": "string"}, "number": {"type": "integer"}, "at": {"type": "string", "format": "date"}}, "required": ["street", "number", "at"], "additionalProperties": false})",
        R"({"anyOf": [{"type": "null"}, {"type": "boolean"}, {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}]})"};
    if (i > 0) properties += ", ", required += ", ";
    properties += "\"" + name + "\": " + kinds[i % 6];
    required += "\"" + name + "\"";
  }
  const std::string record = "{\"type\": \"object\", \"properties\": {" + properties + "}, \"required\": [" + required +
                             "], \"additionalProperties\": false}";
  return "{\"type\": \"object\", \"properties\": {\"one\": " + record + ", \"two\": " + record +
         "}, \"required\": [\"one\", \"two\"], \"additionalProperties\": false}";
}

std::string instance_of(const std::string& salt) {
  std::string record;
  for (int i = 0; i < 15; ++i) {
    const char* const values[] = {"\"some words, and others\"",
                                  "4711",
                                  "[1.5, 22, 3.25]",
                                  "\"a longer choice\"",
                                  R"({"street": "Main street", "number": 12, "at": "2026-11-23"})",
                                  "\"AB-1234\""};
    record += std::string(i > 0 ? ", " : "") + "\"field_" + salt + std::to_string(i) + "\": " + values[i % 6];
  }
  return "{\"one\": {" + record + "}, \"two\": {" + record + "}}";
}

struct Seconds {
  double compile = 0;
  std::vector<double> masks, again;  // of the first text under the constraint; of one more
  double ahead = 0;
};

double at_share(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, size_t(share * double(values.size())))];
}

Seconds ours(const std::string& schema, const std::vector<text::TokenId>& tokens,
             const std::shared_ptr<const TokenBytes>& vocabulary, bool ahead) {
  Seconds out;
  const auto begin = Clock::now();
  const auto constraint = std::make_shared<const Constraint>(
      compile(Language{.kind = Language::Kind::json_schema, .source = schema}), vocabulary);
  out.compile = seconds_since(begin);
  if (ahead) {
    const auto start = Clock::now();
    Matcher(constraint, text::TextPlace::inside).learn_ahead(false);
    out.ahead = seconds_since(start);
  }
  std::vector<MaskWord> mask(mask_words(vocabulary->size()));
  for (std::vector<double>* const masks : {&out.masks, &out.again}) {
    Matcher matcher(constraint);
    for (const text::TokenId token : tokens) {
      const auto start = Clock::now();
      matcher.fill(mask);
      masks->push_back(seconds_since(start));
      check(has_token(mask, token) && matcher.accept(token), "the schema does not allow token ", token);
    }
  }
  return out;
}

void print(const char* what, const std::vector<double>& own, const std::vector<double>& other, const char* name) {
  std::printf("%-28s %s %s", what, text(spread(own), 1).c_str(), name);
  if (!other.empty()) {
    std::vector<double> ratios;
    for (size_t i = 0; i < own.size(); ++i) ratios.push_back(other[i] / own[i]);
    std::printf("; xgrammar %s %s; its time over ours %s", text(spread(other), 1).c_str(), name,
                text(spread(ratios), 2).c_str());
  }
  std::printf("\n");
}

int main_of(int count, char** values) {
  const std::string folder = argument(count, values, "tokenizer", "");
  check(!folder.empty(), "give --tokenizer FOLDER, such as ../shared/data/tokenizers/llama3");
  const int pairs = std::stoi(argument(count, values, "pairs", "5"));
  const auto tokenizer = text::Tokenizer::load(folder);
  const auto begin = Clock::now();
  const auto vocabulary = std::make_shared<const TokenBytes>(tokenizer, std::vector<text::TokenId>{});
  std::printf("vocabulary of %lld tokens as bytes: %.0f ms; schema of %zu bytes\n",
              static_cast<long long>(vocabulary->size()), 1e3 * seconds_since(begin), schema_of("x").size());
  Scratch scratch;
  Peer peer("constraint_peer.py", {folder});
  if (!peer) std::printf("no peer: EASYDEL_PEER_PYTHON names no Python with xgrammar\n");
  std::vector<double> compile[2], median[2], late[2], most[2], all[2], again[2], again_late[2], ahead, ahead_median,
      ahead_late;
  for (int pair = 0; pair < pairs; ++pair) {
    const std::string salt(1, char('a' + pair)), schema = schema_of(salt);
    const std::vector<text::TokenId> tokens = tokenizer->encode(instance_of(salt), {.add_special_tokens = false});
    Seconds sides[2] = {ours(schema, tokens, vocabulary, false), {}};
    const Seconds prepared = ours(schema, tokens, vocabulary, true);
    if (peer) {
      Value request = Value::map(), ids = Value::list();
      for (const text::TokenId id : tokens) ids.items.push_back(Value::integer(id));
      request.set("schema", Value::text(schema));
      request.set("tokens", ids);
      files::write(scratch / "request.json", to_json(request));
      const std::vector<double> numbers = peer.numbers((scratch / "request.json").string());
      check(numbers.size() == 1 + 2 * tokens.size(), "the peer gave up after ", numbers.size(), " numbers");
      const auto middle = numbers.begin() + 1 + int64_t(tokens.size());
      sides[1] = {numbers[0], {numbers.begin() + 1, middle}, {middle, numbers.end()}};
    }
    ahead.push_back(1e3 * prepared.ahead), ahead_median.push_back(1e6 * at_share(prepared.masks, 0.5));
    ahead_late.push_back(1e6 * at_share(prepared.masks, 0.99));
    for (int side = 0; side < (peer ? 2 : 1); ++side) {
      const Seconds& own = sides[side];
      double sum = own.compile;
      for (const double one : own.masks) sum += one;
      compile[side].push_back(1e3 * own.compile), median[side].push_back(1e6 * at_share(own.masks, 0.5));
      late[side].push_back(1e6 * at_share(own.masks, 0.99)), most[side].push_back(1e6 * at_share(own.masks, 1));
      all[side].push_back(1e3 * sum);
      again[side].push_back(1e6 * at_share(own.again, 0.5)),
          again_late[side].push_back(1e6 * at_share(own.again, 0.99));
    }
  }
  print("compile", compile[0], compile[1], "ms");
  print("mask, median", median[0], median[1], "us");
  print("mask, p99", late[0], late[1], "us");
  print("mask, the slowest", most[0], most[1], "us");
  print("learning ahead", ahead, {}, "ms");
  print("then a mask, median", ahead_median, median[1], "us");
  print("then a mask, p99", ahead_late, late[1], "us");
  print("of a second text, median", again[0], again[1], "us");
  print("of a second text, p99", again_late[0], again_late[1], "us");
  print("compile and all masks", all[0], all[1], "ms");
  return 0;
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) { return easydel::bench::main_of(count, values); }
