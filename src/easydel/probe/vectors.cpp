// Reads, answers and compares recorded cases. The meaning of a case belongs to its kind.
#include "easydel/probe/vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/regular_expression.h"
#include "easydel/probe/core.h"

namespace easydel::probe {
namespace {

std::optional<double> number_of(const Value& value) {
  if (value.is_text()) {
    if (value.scalar == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (value.scalar == "Infinity") return std::numeric_limits<double>::infinity();
    if (value.scalar == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  return value.as_double();
}

std::string differ(const std::string& at, const std::string& expected, const std::string& got) {
  constexpr size_t max_shown = 200;
  const auto shortened = [](const std::string& text) {
    return text.size() > max_shown ? text.substr(0, max_shown) + "..." : text;
  };
  return (at.empty() ? std::string("the result") : at) + ": " + shortened(expected) + " is expected, not " +
         shortened(got);
}

std::string compare(const std::string& at, const Value& expected, const Value& got, double relative, double absolute) {
  const auto unlike = [&] { return differ(at, to_json(expected), to_json(got)); };
  if (expected.is_map() && got.is_map()) {
    for (const auto& [key, value] : expected.entries) {
      const std::string path = at.empty() ? key : at + "." + key;
      const Value* const ours = got.find(key);
      if (!ours) return differ(path, to_json(value), "nothing");
      if (std::string text = compare(path, value, *ours, relative, absolute); !text.empty()) return text;
    }
    for (const auto& [key, value] : got.entries)
      if (!expected.find(key)) return differ(at.empty() ? key : at + "." + key, "nothing", to_json(value));
    return "";
  }
  if (expected.is_list() && got.is_list()) {
    if (expected.items.size() != got.items.size())
      return differ(at, str(expected.items.size(), " entries"), str(got.items.size()));
    for (size_t i = 0; i < expected.items.size(); ++i) {
      std::string text = compare(str(at, "[", i, "]"), expected.items[i], got.items[i], relative, absolute);
      if (!text.empty()) return text;
    }
    return "";
  }
  if (expected == got) return "";
  const auto a = number_of(expected), b = number_of(got);
  if (!a || !b) return unlike();
  if (std::isnan(*a) || std::isnan(*b)) return std::isnan(*a) && std::isnan(*b) ? "" : unlike();
  if (*a == *b || std::abs(*a - *b) <= absolute + relative * std::abs(*a)) return "";
  return unlike();
}

// {"ok": ...} or {"error": ...} of a recorded result; some files record the plain value.
Value wrapped(const Value& recorded) {
  if (recorded.is_map() && (recorded.find("ok") || recorded.find("error"))) return recorded;
  Value out = Value::map();
  out.set("ok", recorded);
  return out;
}

std::optional<Value> expectation(const VectorCase& vector, const VectorFile& file, const VectorKind& kind) {
  if (kind.expected) return wrapped(kind.expected(vector, file));
  for (const char* key : {"expect", "result", "value"})
    if (const Value* recorded = vector.body.find(key)) return wrapped(*recorded);
  return std::nullopt;
}

const VectorDifference* purpose(const VectorFile& file, const std::string& kind, const std::string& id,
                                const std::string& why) {
  const Value* const upstream = file.document.find("upstream");
  for (const VectorDifference& difference : vector_differences()) {
    if (difference.kind != kind || !(upstream ? upstream->scalar : "").ends_with(difference.version)) continue;
    if (why.find(difference.says) == std::string::npos) continue;
    if (RegularExpression(std::string(difference.id)).matches(id)) return &difference;
  }
  return nullptr;
}

}  // namespace

std::string difference_of(const Value& expected, const Value& got, double relative, double absolute) {
  return compare("", expected, got, relative, absolute);
}

const VectorKind* find_vector_kind(std::string_view name) {
  const auto in = [&](const std::vector<VectorKind>& kinds) -> const VectorKind* {
    const auto found = std::ranges::find(kinds, name, &VectorKind::name);
    return found == kinds.end() ? nullptr : &*found;
  };
  if (const VectorKind* kind = in(vector_kinds())) return kind;
  return in(core().vector_kinds());
}

VectorFile read_vectors(const std::filesystem::path& path) {
  if (!files::exists(path)) refuse(path.string(), "no such file", "give files of recorded cases");
  VectorFile file{path, parse_json(files::read_compressed(path), path.string())};
  if (!file.document.is_map() && !file.document.is_list())
    refuse(path.string(), "holds no cases", "a file of cases is a JSON object with \"cases\" or \"table\"");
  return file;
}

std::string kind_of(const VectorFile& file) {
  for (const auto& [key, prefix] : {std::pair{"kind", ""}, std::pair{"table", "table_"}})
    if (const Value* named = file.document.find(key); named && named->is_text()) return prefix + named->scalar;
  // An adapter that PEFT saved, with the logits of its model.
  if (file.document.find("lora_config") && file.document.find("base_model")) return "peft_adapter";
  std::filesystem::path name = file.path.filename();
  while (name.extension() == ".gz" || name.extension() == ".json") name = name.stem();
  return (files::absolute(file.path).parent_path().filename() / name).string();
}

std::vector<VectorCase> cases_of(const VectorFile& file, const VectorKind* kind) {
  if (kind && kind->cases) return kind->cases(file);
  std::vector<VectorCase> out;
  const Value* const table = file.document.find("table");
  if (const Value* const cases = file.document.find("cases"); cases && cases->is_list()) {
    for (const Value& body : cases->items) {
      const Value* id = body.find("id") ? body.find("id") : body.find("name");
      const bool named = id && id->is_text();
      out.push_back({named ? id->scalar : str(file.path.string(), "#", out.size()), body});
    }
    if (out.size() == 1 && out[0].id == file.path.string() + "#0") out[0].id = file.path.string();
  } else if (table && table->is_map()) {
    for (const auto& [key, body] : table->entries) out.push_back({key, body});
  } else {
    out.push_back({file.path.string(), file.document});
  }
  return out;
}

Answered answer(const VectorCase& vector, const VectorFile& file, const VectorKind* kind) {
  Answered out{.id = vector.id, .line = Value::map(), .why = ""};
  out.line.set("id", Value::text(vector.id));
  const auto fail = [&](const char* error, const std::string& message) {
    out.line.set("error", Value::text(error));
    out.line.set("message", Value::text(message));
  };
  if (!kind) {
    fail("NotBuilt", "kind '" + kind_of(file) + "' is not built yet");
    out.outcome = Outcome::not_built;
    return out;
  }
  try {
    out.line.set("ok", kind->answer(vector, file));
  } catch (const VectorNotBuilt& missing) {
    fail("NotBuilt", str(missing.what(), " is not built yet"));
    out.outcome = Outcome::not_built;
    return out;
  } catch (const UserError& refusal) {
    fail("UserError", refusal.what());
  } catch (const std::exception& broken) {  // an exception fails the case and the run continues
    fail("Bug", broken.what());
  }
  std::optional<Value> expected;
  try {
    expected = expectation(vector, file, *kind);
  } catch (const std::exception& broken) {
    out.why = str("what it expects cannot be read: ", broken.what());
    out.outcome = Outcome::failed;
    return out;
  }
  if (!expected) return out;
  const Value *ok = expected->find("ok"), *got = out.line.find("ok");
  if (const Value* error = out.line.find("error"); error && error->scalar == "Bug") {
    out.why = out.line.find("message")->scalar;
  } else if (ok && got) {
    const std::optional<double> own = kind->tolerance ? kind->tolerance(vector) : std::nullopt;
    out.why = kind->compare ? kind->compare(*ok, *got)
                            : difference_of(*ok, *got, own.value_or(kind->relative), own.value_or(kind->absolute));
  } else if (ok) {
    out.why = "refused: " + out.line.find("message")->scalar;
  } else if (got) {
    const Value* const error = expected->find("error");
    out.why = "an error is expected: " + (error->is_text() ? error->scalar : to_json(*error));
  }
  out.outcome = out.why.empty() ? Outcome::passed : Outcome::failed;
  if (out.outcome == Outcome::passed) return out;
  if (const VectorDifference* difference = purpose(file, kind->name, vector.id, out.why)) {
    out.line = Value::map();
    out.line.set("id", Value::text(vector.id));
    out.line.set("differs", Value::text(std::string(difference->reason)));
    out.outcome = Outcome::differs;
  }
  return out;
}

const Value& needed(const VectorCase& vector, const char* key) {
  const Value* const found = vector.body.find(key);
  if (!found) refuse(vector.id, str("has no \"", key, "\""));
  return *found;
}

Value list_of(const std::vector<int64_t>& numbers) {
  Value out = Value::list();
  for (const int64_t number : numbers) out.items.push_back(Value::integer(number));
  return out;
}

Value list_of(const std::vector<std::string>& words) {
  Value out = Value::list();
  for (const std::string& word : words) out.items.push_back(Value::text(word));
  return out;
}

std::vector<int64_t> integers_of(const Value& list) {
  std::vector<int64_t> out;
  for (const Value& item : list.items) {
    const auto number = item.as_int();
    if (!number) refuse("vector", to_json(item) + " is not a whole number");
    out.push_back(*number);
  }
  return out;
}

std::vector<std::string> words_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items) out.push_back(item.scalar);
  return out;
}

}  // namespace easydel::probe
