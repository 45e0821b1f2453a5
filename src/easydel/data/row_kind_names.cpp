// What row kinds are called, and which fields each looks into.
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
                              std::span<const char* const>(pair_fields)})
      out.insert(out.end(), names.begin(), names.end());
  out.insert(out.end(), media_fields.begin(), media_fields.end());
  out.insert(out.end(), token_fields.begin(), token_fields.end());
  out.insert(out.end(), {"input_ids", rules.tokens_field, rules.target_field});
  if (rules.weight_field) out.push_back(*rules.weight_field);
  if (rules.content_field) out.push_back(*rules.content_field);
  out.insert(out.end(), rules.additional_fields.begin(), rules.additional_fields.end());
  for (const auto& [theirs, name] : rules.names) out.push_back(theirs);
  return out;
}

}  // namespace easydel::data
