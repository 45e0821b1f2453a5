#include "easydel/server/request_fields.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/config/codec.h"

namespace easydel::server {
namespace {

constexpr size_t max_stops = 64, max_stop_bytes = 1024, max_biased_tokens = 4096;

// Fields of OpenAI's interface whose absence from the answer a client would notice.
constexpr std::array not_served = {std::pair{"audio", "sound"}, std::pair{"modalities", "answers other than text"},
                                   std::pair{"web_search_options", "searching the web"},
                                   std::pair{"prediction", "predicted outputs"},
                                   std::pair{"mm_processor_kwargs", "images and sound"}};

// Whether the schema of a key takes values of one of these types; one that says nothing takes all.
bool takes(const Value& schema, std::initializer_list<std::string_view> types) {
  if (schema.entries.empty()) return true;
  if (const Value* const ways = schema.find("anyOf"))
    return std::ranges::any_of(ways->items, [&](const Value& way) { return takes(way, types); });
  const Value* const type = schema.find("type");
  return type && std::ranges::find(types, type->scalar) != types.end();
}

// The schema of a list's items; null: it says nothing of them.
const Value* items_of(const Value& schema) {
  if (const Value* const own = schema.find("items")) return own;
  if (const Value* const ways = schema.find("anyOf"))
    for (const Value& way : ways->items)
      if (const Value* const own = items_of(way)) return own;
  return nullptr;
}

void check_text(const Value& value, const Value& schema, const std::string& path, config::Problems& problems) {
  if (value.kind == Value::Kind::plain && !value.as_bool() && takes(schema, {"string"}) &&
      !takes(schema, {"integer", "number", "boolean"}))
    problems.add(path, Place{}, config::shown(value) + " is not a string", "");
  if (!value.is_list()) return;
  const Value* const items = items_of(schema);
  if (!items) return;
  for (size_t i = 0; i < value.items.size(); ++i) check_text(value.items[i], *items, str(path, "[", i, "]"), problems);
}

// JSON has types: a number or a boolean where a field is a text is a problem, though YAML would take it.
void check_texts(const Value& map, const config::Section& section, const std::string& path,
                 config::Problems& problems) {
  for (const auto& [name, value] : map.entries)
    for (const config::Key& key : section.keys) {
      if (!key.answers_to(name)) continue;
      const std::string at = config::join_path(path, name);
      if (key.shape == config::Key::Shape::section)
        check_texts(value, *key.section(), at, problems);
      else
        check_text(value, key.schema, at, problems);
    }
}

bool knows(const config::Section& section, std::string_view name) {
  return std::ranges::any_of(section.keys, [&](const config::Key& key) { return key.answers_to(name); });
}

// "messages[2].content" -> "messages".
std::string_view field_of(std::string_view path) { return path.substr(0, path.find_first_of(".[")); }

}  // namespace

void check_stops(std::string_view name, const std::vector<std::string>& stops, config::Keys& keys) {
  if (stops.size() > max_stops) keys.refuse(name, str("has more than ", max_stops, " strings"));
  for (size_t i = 0; i < std::min(stops.size(), max_stops); ++i) {
    if (stops[i].empty()) keys.refuse(str(name, "[", i, "]"), "is empty");
    if (stops[i].size() > max_stop_bytes)
      keys.refuse(str(name, "[", i, "]"), str("is longer than ", max_stop_bytes, " bytes"));
  }
}

bool GenerationFields::has_constraint() const {
  return !guided_json.is_null() || guided_regex || guided_grammar || guided_choice || structured_outputs;
}

void GenerationFields::settle(config::Keys& keys) {
  if (best_of && *best_of < n.value_or(1)) keys.refuse("best_of", str(*best_of, " is less than n"), "leave it out");
  if (stream && best_of && !is_wrong(keys, "n") && *best_of > n.value_or(1))
    keys.refuse("best_of", "cannot be streamed: which answers are best is known at the end", "leave stream out");
  if (stream_options && !stream && !is_wrong(keys, "stream"))
    keys.refuse("stream_options", "is given without stream", "set stream: true");
  if (top_p && *top_p == 0)
    keys.refuse("top_p", "0 would leave no token", "use temperature 0 for the most likely token");
  if (min_tokens && max_tokens && *min_tokens > *max_tokens)
    keys.refuse("min_tokens", str(*min_tokens, " is more than max_tokens"), "lower it");
  if (stop) check_stops("stop", *stop, keys);
  if (logit_bias) {
    if (logit_bias->size() > max_biased_tokens)
      return keys.refuse("logit_bias", str("has more than ", max_biased_tokens, " tokens"));
    for (const auto& [id, bias] : *logit_bias) {
      const bool number = !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos;
      if (!number) keys.refuse("logit_bias", "'" + id + "' is not a token id");
      if (bias < -100 || bias > 100) keys.refuse("logit_bias", str(bias, " is not from -100 to 100"));
    }
  }
  const int kinds = int(!guided_json.is_null()) + guided_regex.has_value() + guided_grammar.has_value() +
                    guided_choice.has_value() + structured_outputs.has_value();
  if (kinds > 1) keys.refuse("guided_json", "and other constraints exclude each other", "give one constraint");
  if (guided_choice && guided_choice->empty()) keys.refuse("guided_choice", "is empty", "give the texts");
}

config::Section with_rule(config::Section section,
                          std::function<void(const void* object, const std::string& path, config::Problems&)> rule) {
  section.read_all = [read = section.read_all, rule = std::move(rule)](
                         const Value& value, void* object, const std::string& path, config::Problems& problems) {
    read(value, object, path, problems);
    rule(object, path, problems);
  };
  return section;
}

void refuse_several_answers(const GenerationFields& generation, const std::string& path, config::Problems& problems) {
  config::Keys keys(problems, path);
  if (generation.n.value_or(1) != 1) keys.refuse("n", "this route gives one answer", "send several requests");
  if (generation.best_of.value_or(1) != 1)
    keys.refuse("best_of", "this route gives one answer", "send several requests");
}

RequestReading::RequestReading(Value body, const config::Section& section, const RequestRules& rules)
    : section_(section), body_(std::move(body)) {
  for (const auto& [name, value] : body_.entries) names_.push_back(name);
  for (const config::Problem& one : rules.found) refuse(one);
  for (const RefusedField& field : rules.refused) {
    const Value* const value = knows(section, field.name) ? body_.find(field.name) : nullptr;
    const bool empty = !value || value->is_null() || (value->is_list() && value->items.empty());
    if (!empty) refuse({field.name, {}, field.problem, field.remedy});
  }
  for (const auto& [field, what] : not_served) {
    const Value* const value = knows(section, field) ? nullptr : body_.find(field);
    if (value && !value->is_null()) refuse({field, {}, str(what, " is not supported"), "leave it out"});
  }
  std::erase_if(body_.entries, [&](const auto& entry) {
    if (knows(section, entry.first)) return false;
    passed_over_.push_back(entry.first);
    return !rules.strict || refused_.contains(entry.first);
  });
  config::Problems types("");
  check_texts(body_, section, "", types);
  take(types);
}

void RequestReading::refuse(const config::Problem& problem) {
  refused_.emplace(field_of(problem.path));
  problems_.add(problem.path, Place{}, problem.what, problem.remedy);
}

bool RequestReading::take(const config::Problems& pass) {
  std::vector<config::Problem> added = pass.sorted();
  // What is said of a field that was left out, because it is wrong, says nothing of the body.
  std::erase_if(added, [&](const config::Problem& problem) { return refused_.contains(field_of(problem.path)); });
  for (const config::Problem& problem : added) refuse(problem);
  return !added.empty();
}

bool RequestReading::read(void* object) {
  config::Problems pass = problems_;
  // A required field that was left out is not missed again, which would keep the rules from being checked.
  for (const std::string& name : refused_) pass.add(name, Place{}, "is missing");
  std::erase_if(body_.entries, [&](const auto& entry) { return refused_.contains(entry.first); });
  config::read_section(section_, body_, object, "", pass);
  return take(pass);
}

void RequestReading::throw_if_any() const {
  if (problems_.empty()) return;
  std::vector<config::Problem> ordered = problems_.sorted();
  const auto place = [&](const config::Problem& problem) {
    return std::ranges::find(names_, field_of(problem.path)) - names_.begin();
  };
  std::ranges::stable_sort(ordered, {}, place);
  config::Problems out("");
  for (config::Problem& problem : ordered)
    out.add(std::move(problem.path), Place{}, std::move(problem.what), std::move(problem.remedy));
  throw_problems(out);
}

}  // namespace easydel::server
