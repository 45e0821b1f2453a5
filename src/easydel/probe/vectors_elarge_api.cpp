// Recorded calls of eLargeModel. A case is a text: a Python call, or a description of what was done. This file parses
// the text and does the same.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/elarge/builder.h"
#include "easydel/elarge/merge.h"
#include "easydel/probe/vectors.h"
#include "easydel/probe/vectors_elarge.h"

namespace easydel::probe {
namespace {

using elarge::Argument, elarge::Arguments, elarge::Builder;

struct Call {
  std::string name;
  std::vector<Value> positional;
  Value keywords = Value::map();

  // The argument with this name, or at this position.
  Value take(std::string_view name, size_t place) const {
    if (const Value* value = keywords.find(name)) return *value;
    return place < positional.size() ? positional[place] : Value{};
  }
  // The positional arguments that a function takes; UserError if there are more.
  void takes_at_most(size_t places) const {
    if (positional.size() > places)
      refuse(name, str(positional.size(), " positional arguments are given, and it takes ", places),
             "give the others by name");
  }
  // The keywords; a mapping as the first argument counts as they do, and they win over it.
  Value all_keys() const {
    takes_at_most(1);
    if (positional.empty() || positional[0].is_null()) return keywords;
    if (!positional[0].is_map()) refuse(name, "the first argument is not a mapping", "give keys by name, or a mapping");
    return elarge::deep_merge(positional[0], keywords);
  }
  Value rest(std::initializer_list<std::string_view> taken) const {
    Value out = keywords;
    std::erase_if(out.entries, [&](const auto& entry) { return std::ranges::find(taken, entry.first) != taken.end(); });
    out.key_places.clear();
    return out;
  }
};

// Python's literals are YAML except for tuples and None.
Value literal(std::string text) {
  std::ranges::replace(text, '(', '[');
  std::ranges::replace(text, ')', ']');
  return text == "None" ? Value{} : parse_yaml(text);
}

// "set_sharding(axis_dims=(1,-1,1,1,1))"; nullopt: not a call.
std::optional<Call> call_of(const std::string& words) {
  const size_t open = words.find('(');
  const auto is_name = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  };
  if (open == std::string::npos || words.back() != ')' || !is_name(words.substr(0, open))) return std::nullopt;
  Call out{words.substr(0, open), {}};
  int depth = 0;
  bool quoted = false;
  std::string argument;
  const std::string inside = words.substr(open + 1, words.size() - open - 2) + ",";
  for (const char c : inside) {
    if (c == '\'') quoted = !quoted;
    if (!quoted) depth += std::string_view("([{").find(c) != std::string_view::npos;
    if (!quoted) depth -= std::string_view(")]}").find(c) != std::string_view::npos;
    if (c != ',' || quoted || depth) {
      argument += c;
      continue;
    }
    argument.erase(
        0, argument.find_first_not_of(' ') == std::string::npos ? argument.size() : argument.find_first_not_of(' '));
    const size_t equals = argument.find('=');
    if (equals != std::string::npos && is_name(argument.substr(0, equals)))
      out.keywords.set(argument.substr(0, equals), literal(argument.substr(equals + 1)));
    else if (!argument.empty())
      out.positional.push_back(literal(argument));
    argument.clear();
  }
  return out;
}

// What one call sets: the given keys by section.
Value set(Builder& on, const Call& call) {
  Value given = Value::map();
  const auto name_of = [&](std::string_view key) { return call.take(key, 0).scalar; };
  const auto section = [&](std::string_view name, const Value& keys) { given.set(name, keys); };
  const std::map<std::string, std::pair<const char*, Builder& (Builder::*)(const Arguments&)>> by_keys{
      {"set_sharding", {"sharding", &Builder::set_sharding}},
      {"set_operation_configs", {"base_config", &Builder::set_operation_configs}},
      {"set_esurge", {"esurge", &Builder::set_esurge}},
      {"set_mixture", {"mixture", &Builder::set_mixture}},
      {"set_eval", {"eval", &Builder::set_eval}}};
  const std::map<std::string, std::pair<const char*, Builder& (Builder::*)(std::string_view, const Arguments&)>>
      by_name{{"set_model", {"model", &Builder::set_model}},
              {"set_teacher_model", {"teacher_model", &Builder::set_teacher_model}},
              {"set_reference_model", {"reference_model", &Builder::set_reference_model}},
              {"set_reward_model", {"reward_model", &Builder::set_reward_model}}};
  if (const auto found = by_keys.find(call.name); found != by_keys.end()) {
    const Value keys = call.all_keys();
    (on.*found->second.second)(Arguments(keys));
    section(found->second.first, keys);
  } else if (const auto found = by_name.find(call.name); found != by_name.end()) {
    call.takes_at_most(1);
    (on.*found->second.second)(name_of("model_name_or_path"), Arguments(call.rest({"model_name_or_path"})));
    section(found->second.first, Value::map());
  } else if (call.name == "set_dtype") {
    call.takes_at_most(2);
    const Value own = call.take("param_dtype", 1);
    on.set_dtype(name_of("dtype"), own.is_null() ? std::nullopt : std::optional<std::string_view>(own.scalar));
    section("loader", Arguments{{"dtype", ""}, {"param_dtype", ""}}.map());
  } else if (call.name == "set_quantization") {
    call.takes_at_most(2);
    Value keys = call.rest({"method"});
    if (call.positional.size() > 1) keys.set("group_size", call.positional[1]);
    on.set_quantization(name_of("method"), Arguments(keys));
    section("quantization", keys);
  } else if (call.name == "set_trainer") {
    call.takes_at_most(1);
    on.set_trainer(name_of("trainer_type"), Arguments(call.rest({"trainer_type"})));
    section("trainer", call.keywords);
  } else if (call.name == "add_dataset") {
    static constexpr std::array<const char*, 3> places{"dataset_type", "content_field", "split"};
    call.takes_at_most(1 + places.size());
    Value keys = call.rest({"data_files"});
    for (size_t i = 1; i < call.positional.size(); ++i) keys.set(places[i - 1], call.positional[i]);
    on.add_dataset(call.take("data_files", 0), Arguments(keys));
    section("mixture", Value::map());
  } else if (call.name == "update_config") {
    call.takes_at_most(1);
    given = call.take("updates", 0);
    on.update_config(Arguments(given));
  } else {
    throw VectorNotBuilt("the call '" + call.name + "'");
  }
  return given;
}

struct Done {
  Builder builder;
  Value given = Value::map();  // by section
  Value sections() const {
    Value out = Value::map();
    const Value all = builder.to_dict();
    for (const auto& [name, keys] : given.entries) out.set(name, member(all, name));
    return out;
  }
};

std::optional<Done> done_by_call(const std::string& words) {
  const std::optional<Call> call = call_of(words);
  if (!call) return std::nullopt;
  Done done;
  if (call->name == "eLargeModel") {
    call->takes_at_most(1);
    if (!call->positional.empty()) done.builder = Builder(call->positional[0]);
    done.given.set("model", Value::map());
  } else if (call->name == "from_pretrained") {
    call->takes_at_most(2);
    const Value task = call->take("task", 1);
    const Value sections = call->rest({"task"});
    done.builder = Builder::from_pretrained(
        call->take("pretrained_model_name_or_path", 0).scalar,
        task.is_null() ? std::nullopt : std::optional<std::string_view>(task.scalar), Arguments(sections));
    done.given = sections;
    if (done.given.entries.empty()) done.given.set("model", task.is_null() ? Value::map() : call->keywords);
  } else {
    done.given = set(done.builder, *call);
  }
  return done;
}

Done two_data_sets() {
  Done done;
  done.builder.add_dataset("a.json").add_dataset("b.json", {{"name", "q"}});
  done.given.set("mixture", Value::map());
  return done;
}

std::optional<Done> done_by(const VectorCase& vector) {
  const std::string words = member(vector.body, "desc").scalar;
  return words == "two add_dataset calls" ? two_data_sets() : done_by_call(words);
}

Value round_trip(Value (*read)(const Value& document)) {
  const Builder before = Builder::from_pretrained("x").set_sharding({{"axis_dims", {1, 2, 1, 4, 1}}});
  Value out = Value::map();
  out.set("equal", Value::boolean(Builder(read(before.to_dict())).to_dict() == before.to_dict()));
  return out;
}

Value none() { return {}; }
Builder named() { return Builder::from_pretrained("tiny-llama"); }

// Descriptions that are not calls.
Value done_in_words(const std::string& words) {
  static const std::map<std::string, std::function<Value()>, std::less<>> all{
      {"to_yaml/from_yaml", [] { return round_trip([](const Value& v) { return parse_yaml(to_yaml(v)); }); }},
      {"to_json/from_json", [] { return round_trip([](const Value& v) { return parse_json(to_json(v, 2)); }); }},
      {"from_json of a list", [] { return Builder(parse_json("[1]")), none(); }},
      {"from_json of malformed text", [] { return Builder(parse_json("{x")), none(); }},
      {"from_json of a missing file", [] { return Builder::from_json("missing.json"), none(); }},
      {"from_yaml of a missing file", [] { return Builder::from_yaml("missing.yaml"), none(); }},
      {"from_yaml of a list", [] { return Builder(parse_yaml("[1]")), none(); }},
      {"from_yaml of an empty file", [] { return Builder(parse_yaml("")), none(); }},
      {"teacher/reference names when absent",
       [] {
         Value out = Value::list();
         for (const auto& name : {named().teacher_model_name(), named().reference_model_name()})
           out.items.push_back(name ? Value::text(*name) : Value{});
         return out;
       }},
      {"build_teacher_model without section", [] { return Value::boolean(named().build_teacher_model() != nullptr); }},
      {"build_reference_model without section",
       [] { return Value::boolean(named().build_reference_model() != nullptr); }},
      {"build_dataset without informs", [] { return Value::boolean(named().build_dataset() != nullptr); }},
      {"build_sharded_source without informs", [] { return Value::boolean(named().build_dataset() != nullptr); }},
      {"repr", [] { return Value::text(named().text()); }},
  };
  const auto found = all.find(words);
  if (found == all.end()) throw VectorNotBuilt("what '" + words + "' says");
  const Value out = found->second();
  return out.as_bool() == false ? none() : out;  // nothing was built: None
}

// The classes of a method, derived from the letters of its name.
Value classes_of(const std::string& type) {
  const train::MethodConfig* const method = train::find_method_config(type);
  if (canonical(type) == "base") return list_of(std::vector<std::string>{"Trainer", "TrainingArguments"});
  if (!method || method->name == "ray") refuse("trainer_type", "'" + type + "' is not a method that trains");
  static constexpr std::array<std::string_view, 3> short_words{"nash", "on",
                                                               "seq"};  // short words that are not initials
  std::string stem, word;
  for (const char c : canonical(type) + "_") {
    if (c != '_') {
      word += c;
      continue;
    }
    const bool initials = word.size() <= 4 && std::ranges::find(short_words, word) == short_words.end();
    for (size_t i = 0; i < (initials ? word.size() : 1); ++i)
      word[i] = char(std::toupper(static_cast<unsigned char>(word[i])));
    stem += std::exchange(word, {});
  }
  return list_of(std::vector<std::string>{stem + "Trainer", stem + "Config"});
}

constexpr std::string_view classes_prefix = "trainer and arguments class for ",
                           leak_prefix = "sections of a NEW default object that changed";

Value call(const VectorCase& vector, const VectorFile&) {
  const std::string words = member(vector.body, "desc").scalar;
  if (words.starts_with(classes_prefix)) return classes_of(words.substr(classes_prefix.size()));
  if (words.starts_with(leak_prefix)) {
    const Value before = Builder().to_dict();
    Builder changed;
    changed.set_dtype("fp32").add_dataset("a.json").set_esurge({{"max_model_len", 512}});
    check(Builder().to_dict() == before, "one builder changed another");
    return Value::map();
  }
  const std::optional<Done> done = done_by(vector);
  if (!done) return done_in_words(words);
  const Value sections = done->sections();
  return words.starts_with("from_pretrained") ? sections.entries[0].second : sections;
}

Value expected(const VectorCase& vector, const VectorFile&) {
  const std::string words = member(vector.body, "desc").scalar;
  Value out = member(vector.body, "result");
  Value* const ok = out.find("ok");
  if (!ok || !ok->is_map() || words.starts_with(leak_prefix)) return out;
  if (ok->find("equal")) {  // the beginning of the text is parsed by the reader
    Value equal = Value::map();
    equal.set("equal", *ok->find("equal"));
    out.set("ok", equal);
    return out;
  }
  std::optional<Done> done;
  try {
    done = done_by(vector);
  } catch (const std::exception&) {  // thrown again, and reported, when the case is answered
    return out;
  }
  if (!done) return out;
  Value recorded = *ok;
  const bool section_alone = words.starts_with("from_pretrained");
  const std::string name = section_alone ? done->given.entries[0].first : "";
  if (section_alone) {
    if (!member(done->given, name).find("task"))
      std::erase_if(recorded.entries, [](const auto& e) { return e.first == "task"; });
    Value wrapped = Value::map();
    wrapped.set(name, recorded);
    recorded = wrapped;
  }
  if (Value* const mixture = recorded.find("mixture"); mixture && mixture->find("informs"))
    for (Value& inform : mixture->find("informs")->items)  // ours is detected from the rows
      if (words.find("content_field") == std::string::npos)
        std::erase_if(inform.entries, [](const auto& entry) { return entry.first == "content_field"; });
  recorded = with_our_defaults(recorded, done->given, done->builder.to_dict());
  out.set("ok", section_alone ? *recorded.find(name) : recorded);
  return out;
}

}  // namespace

VectorKind elarge_api_vectors() { return {.name = "elarge_api", .answer = call, .expected = expected}; }

}  // namespace easydel::probe
