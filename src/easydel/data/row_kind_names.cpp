// What row kinds are called, and which fields each looks into.
#include <algorithm>
#include <iterator>
#include <span>

#include "easydel/base/names.h"
#include "easydel/data/row_fields.h"
#include "easydel/data/row_kinds.h"
#include "easydel/data/token_rows.h"

namespace easydel::data {

std::string_view name_of(RowKind kind) {
  switch (kind) {
    case RowKind::text:
      return "text";
    case RowKind::messages:
      return "messages";
    case RowKind::prompt_completion:
      return "prompt_completion";
    case RowKind::preference:
      return "preference";
    case RowKind::prompt:
      return "prompt";
    case RowKind::unpaired:
      return "unpaired";
    case RowKind::stepwise:
      return "stepwise";
    case RowKind::contrast:
      return "contrast";
    case RowKind::labelled:
      return "labelled";
    case RowKind::tokens:
      return "tokens";
  }
  return "";
}

std::string fields_of(RowKinds kinds) {
  struct Words {
    RowKind kind;
    const char* fields;
  };
  static constexpr std::array all{Words{RowKind::text, "texts"},
                                  Words{RowKind::messages, "messages"},
                                  Words{RowKind::prompt_completion, "prompt + completion"},
                                  Words{RowKind::preference, "prompt + chosen + rejected"},
                                  Words{RowKind::prompt, "prompts"},
                                  Words{RowKind::unpaired, "prompt + completion + label"},
                                  Words{RowKind::stepwise, "prompt + completions + labels"},
                                  Words{RowKind::contrast, "query + positive"},
                                  Words{RowKind::labelled, "text + label"}};
  std::vector<std::string> words;
  for (const Words& one : all)
    if (kinds.has(one.kind)) words.emplace_back(one.fields);
  if (words.size() > 1) words.back() = "or " + words.back();
  return join(words, words.size() > 2 ? ", " : " ");
}

namespace {

// What a row of a kind has; `more` may be there.
struct NeededFields {
  RowKind kind;
  std::vector<std::string> needed, more = {};
};

std::vector<NeededFields> needed_fields(const std::string& text_field) {
  return {
      {RowKind::text, {text_field}},
      {RowKind::messages, {"messages"}},
      {RowKind::messages, {"conversations"}},
      {RowKind::prompt_completion, {"prompt", "completion"}},
      {RowKind::prompt_completion, {"instruction", "output"}, {"input"}},
      {RowKind::preference, {"chosen", "rejected"}, {"prompt", "instruction", "input"}},
      {RowKind::unpaired, {"prompt", "completion", "label"}},
      {RowKind::stepwise, {"prompt", "completions", "labels"}},
      {RowKind::contrast, {"query", "positive"}, {"negative", "negatives"}},
      {RowKind::contrast, {"anchor", "positive"}, {"negative", "negatives"}},
      {RowKind::prompt, {"prompt"}},
  };
}

}  // namespace

std::string missing_field(const Value& fields, RowKinds meant, std::optional<RowKind> fitting,
                          const std::string& text_field) {
  if (meant.empty()) return {};
  const std::vector<NeededFields> all = needed_fields(text_field);
  const auto is_there = [&](const std::string& name) { return has(fields, name); };
  const auto is_in = [](const std::vector<std::string>& names) {
    return [&names](const std::string& name) { return std::ranges::count(names, name) > 0; };
  };
  const auto fields_present = [&](const NeededFields& kind) {
    std::vector<std::string> out;
    for (const auto& names : {kind.needed, kind.more}) std::ranges::copy_if(names, std::back_inserter(out), is_there);
    return out;
  };
  std::vector<std::string> used;  // by the kind that fits
  for (const NeededFields& kind : all)
    if (kind.kind == fitting && std::ranges::all_of(kind.needed, is_there)) used = fields_present(kind);
  // Without any of their fields, one of the first kind is missing, unless that is a text, which may have any name.
  std::string out;
  std::optional<size_t> most;
  if (fitting || meant.has(RowKind::text)) most = 0;
  for (const NeededFields& kind : all) {
    const std::vector<std::string> present = fields_present(kind);
    const auto missing = std::ranges::find_if_not(kind.needed, is_there);
    if (!meant.has(kind.kind) || missing == kind.needed.end() || (most && present.size() <= *most)) continue;
    if (!std::ranges::all_of(used, is_in(present)) && std::ranges::all_of(present, is_in(used))) continue;
    out = *missing, most = present.size();
  }
  return out;
}

bool has_text(const Value& fields, const FieldRules& rules) {
  static constexpr std::array names{"text",   "content",  "messages",    "conversations", "prompt", "completion",
                                    "chosen", "rejected", "instruction", "query",         "anchor", "input_ids"};
  const auto is_there = [&](std::string_view name) { return has(fields, name); };
  return std::ranges::any_of(names, is_there) || is_there(rules.target_field) || is_there(rules.tokens_field) ||
         (rules.content_field && is_there(*rules.content_field));
}

std::vector<std::string> fields_read(const FieldRules& rules) {
  if (rules.all_columns) return {};
  std::vector<std::string> out{"text",        "content", "messages", "conversations", "prompt",
                               "completion",  "chosen",  "rejected", "tools",         "chat_template_kwargs",
                               "instruction", "input",   "output"};
  const auto add_for = [&](RowKind kind, std::initializer_list<const char*> names) {
    if (rules.taken.empty() || rules.taken.has(kind) || rules.kind == kind)
      out.insert(out.end(), names.begin(), names.end());
  };
  add_for(RowKind::preference, {"reference", "margin"});
  add_for(RowKind::unpaired, {"label"});
  add_for(RowKind::stepwise, {"completions", "labels"});
  add_for(RowKind::contrast, {"query", "anchor", "positive", "negative", "negatives"});
  if (rules.taken.has(RowKind::labelled) || rules.kind == RowKind::labelled)
    for (const auto& names : {std::span<const char* const>(label_fields), std::span<const char* const>(text_fields),
                              std::span<const char* const>(pair_fields), std::span<const char* const>(question_fields)})
      out.insert(out.end(), names.begin(), names.end());
  out.insert(out.end(), media_fields.begin(), media_fields.end());
  out.insert(out.end(), token_fields.begin(), token_fields.end());
  for (const auto& [name, older] : answer_fields) out.insert(out.end(), {name, older});
  out.insert(out.end(), {"input_ids", rules.tokens_field, rules.target_field});
  if (rules.weight_field) out.push_back(*rules.weight_field);
  if (rules.content_field) out.push_back(*rules.content_field);
  out.insert(out.end(), rules.additional_fields.begin(), rules.additional_fields.end());
  for (const auto& [theirs, name] : rules.names) out.push_back(theirs);
  return out;
}

}  // namespace easydel::data
