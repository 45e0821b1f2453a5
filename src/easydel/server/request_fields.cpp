#include "easydel/server/request_fields.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "easydel/base/error.h"
#include "easydel/config/codec.h"
#include "easydel/generation/generation_config.h"

namespace easydel::server {
namespace {

constexpr size_t max_stops = 64, max_stop_bytes = 1024, max_biased_tokens = 4096;

// Fields of OpenAI's interface whose absence from the answer a client would notice.
constexpr std::array not_served = {std::pair{"audio", "sound"}, std::pair{"modalities", "answers other than text"},
                                   std::pair{"web_search_options", "searching the web"},
                                   std::pair{"prediction", "predicted outputs"},
                                   std::pair{"mm_processor_kwargs", "images and sound"}};

// Fields of generation that other programs have and the server does not, with the value that changes nothing.
struct NotServedUnless {
  std::string_view field, what, neutral;
};
constexpr std::array not_served_unless = {
    NotServedUnless{"num_beams", "beam search", "1"}, NotServedUnless{"use_beam_search", "beam search", "false"},
    NotServedUnless{"num_beam_groups", "beam search", "1"}, NotServedUnless{"penalty_alpha", "contrastive search", "0"},
    NotServedUnless{"guidance_scale", "guidance by a negative prompt", "1"}};

constexpr std::string_view invalid_value = "invalid_value", missing_field = "missing_field",
                           unsupported_parameter = "unsupported_parameter";

// The value at a path like "messages[2].content"; null: there is none.
const Value* at_path(const Value& body, std::string_view path) {
  const Value* at = &body;
  while (at && !path.empty()) {
    if (path.starts_with('.')) path.remove_prefix(1);
    if (path.starts_with('[')) {
      size_t index = 0;
      const size_t end = path.find(']');
      const auto [rest, failed] = std::from_chars(path.data() + 1, path.data() + std::min(end, path.size()), index);
      if (failed != std::errc() || !at->is_list() || index >= at->items.size()) return nullptr;
      at = &at->items[index];
      path.remove_prefix(std::min(end + 1, path.size()));
    } else {
      const size_t end = std::min(path.find_first_of(".["), path.size());
      at = at->is_map() ? at->find(path.substr(0, end)) : nullptr;
      path.remove_prefix(end);
    }
  }
  return at;
}

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

std::string_view GenerationFields::constraint_field() const {
  if (!guided_json.is_null()) return "guided_json";
  if (guided_regex) return "guided_regex";
  if (guided_grammar) return "guided_grammar";
  if (guided_choice) return "guided_choice";
  return structured_outputs ? "structured_outputs" : "";
}

Value sampler_fields(const GenerationFields& f) {
  Value out = Value::map();
  const std::initializer_list<std::pair<const char*, const Value*>> fields = {
      {"encoder_repetition_penalty", &f.encoder_repetition_penalty},
      {"no_repeat_ngram_size", &f.no_repeat_ngram_size},
      {"encoder_no_repeat_ngram_size", &f.encoder_no_repeat_ngram_size},
      {"bad_words_ids", &f.bad_words_ids},
      {"forced_bos_token_id", &f.forced_bos_token_id},
      {"forced_eos_token_id", &f.forced_eos_token_id},
      {"remove_invalid_values", &f.remove_invalid_values},
      {"exponential_decay_length_penalty", &f.exponential_decay_length_penalty},
      {"begin_suppress_tokens", &f.begin_suppress_tokens},
      {"sequence_bias", &f.sequence_bias},
      {"top_h", &f.top_h},
      {"epsilon_cutoff", &f.epsilon_cutoff},
      {"eta_cutoff", &f.eta_cutoff},
      {"renormalize_logits", &f.renormalize_logits},
  };
  for (const auto& [name, value] : fields)
    if (!value->is_null()) out.set(name, *value);
  return out;
}

void GenerationFields::settle(config::Keys& keys) {
  if (const Value own = sampler_fields(*this); !own.entries.empty()) {
    generation::GenerationConfig ignored;
    config::Problems found("");
    config::read_section(config::section_of<generation::GenerationConfig>(), own, &ignored, "", found);
    for (const config::Problem& problem : found.sorted()) keys.refuse(problem.path, problem.what, problem.remedy);
  }
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
  if (kinds > 1) keys.refuse(constraint_field(), "and other constraints exclude each other", "give one constraint");
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
  for (const config::Problem& one : rules.missing) refuse(one, missing_field);
  for (const config::Problem& one : rules.found) refuse(one, invalid_value);
  for (const RefusedField& field : rules.refused) {
    const Value* const value = knows(section, field.name) ? body_.find(field.name) : nullptr;
    const bool empty = !value || value->is_null() || (value->is_list() && value->items.empty());
    if (!empty) refuse({field.name, {}, field.problem, field.remedy}, unsupported_parameter);
  }
  for (const auto& [field, what] : not_served) {
    const Value* const value = knows(section, field) ? nullptr : body_.find(field);
    if (value && !value->is_null())
      refuse({field, {}, str(what, " is not supported"), "leave it out"}, unsupported_parameter);
  }
  for (const auto& [field, what, neutral] : not_served_unless) {
    const Value* const value = knows(section, field) ? nullptr : body_.find(field);
    if (value && !value->is_null() && value->scalar != neutral)
      refuse({std::string(field), {}, str(what, " is not supported by the server"), "leave it out"},
             unsupported_parameter);
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

// What the server does not take is told from what is wrong: by the value at the path, never by the text.
std::string_view RequestReading::code_of(const config::Problem& problem) const {
  const std::string_view field = field_of(problem.path);
  const Value* const value = at_path(body_, problem.path);
  const auto is_field = [&](const config::Key& key) { return key.answers_to(field); };
  const auto key = std::ranges::find_if(section_.keys, is_field);
  const bool known = key != section_.keys.end();
  // The path has the field's first name, where the body may have another one.
  const auto is_given = [&](const auto& entry) { return entry.first != field && key->answers_to(entry.first); };
  if (known && std::ranges::any_of(body_.entries, is_given)) return invalid_value;
  if (!value || value->is_null()) return missing_field;
  if (!known) return unsupported_parameter;
  // An item with a type is only refused as a whole because of that type: an image, a tool that the server would run.
  if (problem.path.ends_with(']') && value->is_map() && value->find("type")) return unsupported_parameter;
  return invalid_value;
}

void RequestReading::refuse(const config::Problem& problem) { refuse(problem, code_of(problem)); }

void RequestReading::refuse(const config::Problem& problem, std::string_view code) {
  codes_.emplace(problem.path, code);
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
  std::string code(codes_.at(ordered.front().path));
  config::Problems out("");
  for (config::Problem& problem : ordered)
    out.add(std::move(problem.path), Place{}, std::move(problem.what), std::move(problem.remedy));
  throw WrongBody(out, std::move(code));
}

}  // namespace easydel::server
