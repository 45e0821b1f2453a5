#include "easydel/data/row_kinds.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/data/row_fields.h"

namespace easydel::data {
namespace {

bool is_message(const Value& value) {
  return value.is_map() && (value.find("role") || (value.find("from") && value.find("value")));
}

bool is_messages(const Value& value) {
  return value.is_list() && !value.items.empty() && std::ranges::all_of(value.items, is_message);
}

Value list_of(Value message) {
  Value out = Value::list();
  out.items.push_back(std::move(message));
  return out;
}

Value message_of(const std::string& role, const Value& content) {
  Value out = Value::map();
  out.set("role", Value::text(role));
  out.set("content", content);
  return out;
}

// ShareGPT's {from, value} into {role, content}.
Value with_roles(Value messages) {
  for (Value& message : messages.items) {
    if (message.find("role")) continue;
    for (auto& [key, value] : message.entries) {
      if (key == "from") {
        key = "role";
        if (value.scalar == "human") value = Value::text("user");
        if (value.scalar == "gpt") value = Value::text("assistant");
      } else if (key == "value") {
        key = "content";
      }
    }
  }
  return messages;
}

bool is_empty(const Value& value) {
  return value.is_list()  ? value.items.empty()
         : value.is_map() ? value.entries.empty()
                          : value.is_null() || value.scalar.empty();
}

class Reader {
 public:
  Reader(Row row, const FieldRules& rules) : row_(std::move(row)), rules_(rules) {}

  TypedRow read() {
    for (const auto& [theirs, name] : rules_.names)
      if (theirs != name && has(row_.fields, theirs)) rename(theirs, name);
    for (const std::string& name : rules_.additional_fields)
      if (!has(row_.fields, name)) no_field(row_, name, str("drop it from ", rules_.inform, ".additional_fields"));
    refuse_media();
    choose_content();
    TypedRow out;
    out.kind = rules_.kind.value_or(detected());
    out.where = row_.where;
    switch (out.kind) {
      case RowKind::text:
        out.text = content(rules_.target_field);
        break;
      case RowKind::messages:
        out.text =
            content(row_.fields.find("conversations") && !row_.fields.find("messages") ? "conversations" : "messages");
        break;
      case RowKind::prompt_completion:
        if (is_instruction()) {
          out.completion = answer("output");
          put_instruction(out);
        } else {
          out.prompt = content("prompt"), out.completion = content("completion");
        }
        break;
      case RowKind::preference:
        out.chosen = content("chosen"), out.rejected = content("rejected");
        if (has(row_.fields, "reference")) out.reference = content("reference");
        if (has(row_.fields, "margin")) out.margin = *row_.fields.find("margin");
        put_prompt_of_pair(out);
        break;
      case RowKind::prompt:
        out.prompt = content("prompt");
        break;
      case RowKind::unpaired:
        out.prompt = content("prompt"), out.completion = content("completion");
        out.label = mark_of(row_, *row_.fields.find("label"), "label");
        break;
      case RowKind::stepwise:
        put_steps(out);
        break;
      case RowKind::contrast:
        put_contrast(out);
        break;
      case RowKind::labelled:
        put_labelled(out);
        break;
      case RowKind::tokens:
        break;  // typed_parts
    }
    out.conversational = conversational(out);
    refuse_empty(out);
    if (rules_.all_columns) out.columns = row_.fields;
    if (const Value* tools = row_.fields.find("tools")) out.tools = parsed(*tools);
    if (const Value* arguments = row_.fields.find("chat_template_kwargs")) out.template_arguments = *arguments;
    return out;
  }

 private:
  // Answers say nothing without a text, and neither do prompts to answer or whose answers are marked. Those of pairs
  // and of plain answers may be missing.
  void refuse_empty(const TypedRow& row) const {
    const auto refuse_field = [&](const char* name, const Value& value) {
      if (is_empty(value)) refuse(row_.where, str("field '", name, "' is empty"), "drop the row, or give it a text");
    };
    if (row.kind == RowKind::prompt || row.kind == RowKind::unpaired || row.kind == RowKind::stepwise)
      refuse_field("prompt", row.prompt);
    if (row.kind == RowKind::unpaired || row.kind == RowKind::prompt_completion)
      refuse_field("completion", row.completion);
    if (row.kind == RowKind::preference) {
      refuse_field("chosen", row.chosen);
      refuse_field("rejected", row.rejected);
    }
  }

  // The text alone would teach the model to answer as if there were no picture.
  void refuse_media() const {
    for (const char* name : media_fields) {
      const Value* const value = row_.fields.find(name);
      if (!value || is_empty(*value) || name == rules_.target_field || name == rules_.content_field) continue;
      refuse(row_.where,
             str("the row has the field '", name, "', and training on images, sound or video is not built yet"),
             str("use rows without it; if it is something else, rename it with ", rules_.inform, ".format_fields: {",
                 name, ": another_name}"));
    }
  }

  void rename(const std::string& old_name, const std::string& new_name) {
    for (auto& [key, value] : row_.fields.entries)
      if (key == old_name) key = new_name;
  }

  // content_field, under the name that the rest goes by: the text, the conversation, or the prompt of a pair.
  void choose_content() {
    std::string field = rules_.content_field.value_or("");
    const bool pair = has(row_.fields, "chosen") && has(row_.fields, "rejected");
    if (field.empty()) {
      if (pair || standard() || !has(row_.fields, "content") || has(row_.fields, rules_.target_field)) return;
      field = "content";
    }
    if (!row_.fields.find(field)) {
      if (pair) return;
      no_field(row_, field, str("name the field with the text by ", rules_.inform, ".content_field"));
    }
    if (field == "prompt" && (pair || has(row_.fields, "completion"))) return;
    Value value = *row_.fields.find(field);
    const std::string name = pair ? "prompt" : is_messages(value) ? "messages" : rules_.target_field;
    row_.fields.set(name, std::move(value));
    if (!pair && field != "messages" && field != "conversations" && rules_.content_field) chosen_text_ = true;
  }

  bool standard() const {
    return has(row_.fields, "messages") || has(row_.fields, "conversations") ||
           (has(row_.fields, "prompt") && has(row_.fields, "completion"));
  }

  // Alpaca's row: an instruction, perhaps with an input, and an output (or a pair of answers).
  bool is_instruction() const {
    const Value* const instruction = row_.fields.find("instruction");
    return instruction && instruction->is_text() && !has(row_.fields, "prompt");
  }

  Value answer(const std::string& name) const {
    const Value out = content(name);
    if (!out.is_text()) refuse(row_.where, str("field '", name, "' of an instruction is not a text"));
    return list_of(message_of("assistant", out));
  }

  // The instruction as a user's message, and as the text that Alpaca was trained with.
  void put_instruction(TypedRow& row) const {
    const std::string instruction = row_.fields.find("instruction")->scalar;
    const Value* const given = row_.fields.find("input");
    const std::string input = given && given->is_text() ? given->scalar : "";
    row.prompt = list_of(message_of("user", Value::text(input.empty() ? instruction : instruction + "\n" + input)));
    row.instruction_text =
        input.empty() ? str("Below is an instruction that describes a task. Write a response that appropriately "
                            "completes the request.\n\n### Instruction:\n",
                            instruction, "\n\n### Response:\n")
                      : str("Below is an instruction that describes a task, paired with an input that provides further "
                            "context. Write a response that appropriately completes the request.\n\n### "
                            "Instruction:\n",
                            instruction, "\n\n### Input:\n", input, "\n\n### Response:\n");
  }

  static bool is_one_answer(const Value& answer) {
    const Value* const role = answer.is_list() && answer.items.size() == 1 ? answer.items[0].find("role") : nullptr;
    return role && role->scalar == "assistant";
  }

  void put_prompt_of_pair(TypedRow& row) const {
    if (has(row_.fields, "prompt")) {
      row.prompt = content("prompt");
      // As TRL: a text next to lists of messages repeats what they begin with.
      if (!row.prompt.is_text() || !row.chosen.is_list() || !row.rejected.is_list()) return;
    } else if (const Value* const earlier =
                   row_.fields.find("conversations") ? row_.fields.find("conversations") : row_.fields.find("messages");
               earlier && is_messages(*earlier) && is_one_answer(row.chosen) && is_one_answer(row.rejected)) {
      row.prompt = with_roles(*earlier);
      return;
    } else if (is_instruction() && row.chosen.is_text() && row.rejected.is_text()) {
      row.chosen = answer("chosen"), row.rejected = answer("rejected");
      return put_instruction(row);
    } else {
      row.prompt_is_shared = true;
    }
    split_prompt(row);
    if (!row.reference.is_null()) take_prompt_from_reference(row);
    if (!row.prompt_is_shared) return;
    static constexpr std::array used{"chosen", "rejected", "reference", "tools", "chat_template_kwargs"};
    for (const auto& [name, value] : row_.fields.entries)
      if (value.is_text() && !value.scalar.empty() && std::ranges::find(used, name) == used.end())
        row.unused_texts.push_back(name);
  }

  // The kinds that the fields fit, the ones that say more first.
  std::vector<RowKind> fitting() const {
    const auto all = [&](std::initializer_list<const char*> names) {
      return std::ranges::all_of(names, [&](const char* name) { return has(row_.fields, name); });
    };
    std::vector<RowKind> out;
    if (all({"chosen", "rejected"})) out.push_back(RowKind::preference);
    if (all({"prompt", "completions", "labels"})) out.push_back(RowKind::stepwise);
    if (all({"query", "positive"}) || all({"anchor", "positive"})) out.push_back(RowKind::contrast);
    if (!chosen_text_ && all({"prompt", "completion"})) {
      if (all({"label"})) out.push_back(RowKind::unpaired);
      out.push_back(RowKind::prompt_completion);
    }
    if (is_instruction() && all({"output"}) && !chosen_text_ && !standard()) out.push_back(RowKind::prompt_completion);
    if (all({"messages"}) || all({"conversations"})) out.push_back(RowKind::messages);
    if (rules_.taken.has(RowKind::labelled) && has_answers()) out.push_back(RowKind::labelled);
    if (first_of(label_fields) && (first_of(text_fields) || has(row_.fields, rules_.target_field)) &&
        rules_.taken.has(RowKind::labelled))
      out.push_back(RowKind::labelled);
    if (has(row_.fields, rules_.target_field)) out.push_back(RowKind::text);
    // A null completion is a mistake, unless only prompts are wanted.
    if (all({"prompt"}) && (rules_.taken.has(RowKind::prompt) || !row_.fields.find("completion")))
      out.push_back(RowKind::prompt);
    return out;
  }

  RowKind detected() const {
    const std::vector<RowKind> kinds = fitting();
    for (const RowKind kind : kinds)
      if (rules_.taken.has(kind)) return kind;
    const std::optional<RowKind> fits = kinds.empty() ? std::nullopt : std::optional(kinds.front());
    const std::string missing = missing_field(row_.fields, rules_.taken, fits, rules_.target_field);
    if (!missing.empty())
      no_field(row_, missing,
               str("give ", fields_of(rules_.taken), ", or name it with ", rules_.inform,
                   ".format_fields: {your_name: ", missing, "}"));
    if (fits) return *fits;
    no_field(row_, rules_.target_field,
             str("name the field with the text by ", rules_.inform,
                 ".content_field; or give messages, prompt + completion, instruction + output, or prompt + chosen + "
                 "rejected"));
  }

  template <size_t N>
  const char* first_of(const std::array<const char*, N>& names) const {
    for (const char* name : names)
      if (has(row_.fields, name)) return name;
    return nullptr;
  }

  const Value& list(const char* name) const {
    const Value* const value = row_.fields.find(name);
    if (!value || value->is_null()) content(name);  // says what is missing
    if (!value->is_list()) refuse(row_.where, str("field '", name, "' is not a list"));
    return *value;
  }

  void put_steps(TypedRow& row) const {
    row.prompt = content("prompt");
    row.completions = list("completions");
    row.label = list("labels");
    for (const Value& step : row.completions.items)
      if (step.is_list() || step.is_map() || step.is_null())
        refuse(row_.where, "a step in 'completions' is not a text", "give the steps as a list of texts");
    if (row.completions.items.size() != row.label.items.size())
      refuse(row_.where,
             str("the row has ", counted(int64_t(row.label.items.size()), "label"), " for ",
                 counted(int64_t(row.completions.items.size()), "step")),
             "give one label for each step of 'completions'");
    if (row.completions.items.empty())
      refuse(row_.where, "'completions' is empty", "give at least one step, or drop the row");
    for (Value& label : row.label.items) label = mark_of(row_, label, "labels");
  }

  void put_contrast(TypedRow& row) const {
    row.query = content(has(row_.fields, "query") ? "query" : "anchor"), row.positive = content("positive");
    row.negatives = Value::list();
    for (const char* name : {"negatives", "negative"}) {
      const Value* const value = row_.fields.find(name);
      if (!value || value->is_null()) continue;
      if (value->is_list() && !is_messages(*value))
        row.negatives.items.insert(row.negatives.items.end(), value->items.begin(), value->items.end());
      else
        row.negatives.items.push_back(content(name));
    }
    const auto is_text = [](const Value& value) { return !value.is_list() && !value.is_map() && !value.is_null(); };
    if (!is_text(row.query) || !is_text(row.positive) || !std::ranges::all_of(row.negatives.items, is_text))
      refuse(row_.where, "query, positive and negatives are not all texts", "give strings");
  }

  // A question with a text in which its answers are.
  bool has_answers() const {
    return std::ranges::all_of(question_fields, [&](const char* name) { return has(row_.fields, name); });
  }

  void put_labelled(TypedRow& row) const {
    if (has_answers()) {
      row.text = Value::text(content("question").scalar), row.text_pair = Value::text(content("context").scalar);
      row.label = *row_.fields.find("answers");
      return;
    }
    const char* const text =
        has(row_.fields, rules_.target_field) ? rules_.target_field.c_str() : first_of(text_fields);
    const char* const label = first_of(label_fields);
    if (!text) content(rules_.target_field);
    if (!label) no_field(row_, "label", str("name it with ", rules_.inform, ".format_fields: {your_name: label}"));
    row.text = *row_.fields.find(text);
    row.label = *row_.fields.find(label);
    if (const char* const pair = first_of(pair_fields)) row.text_pair = content(pair);
    if (row.text.is_map() || (row.text.is_list() && std::ranges::any_of(row.text.items, [](const Value& word) {
                                return word.is_list() || word.is_map() || word.is_null();
                              })))
      refuse(row_.where, str("field '", text, "' is neither a text nor a list of words"));
    if (!row.text.is_list()) row.text = Value::text(row.text.scalar);
  }

  Value content(const std::string& name) const {
    const Value* value = row_.fields.find(name);
    if (!value || value->is_null())
      no_field(row_, name, str("name it with ", rules_.inform, ".format_fields: {your_name: ", name, "}"));
    if (is_messages(*value)) return with_roles(*value);
    if (is_message(*value)) return with_roles(list_of(*value));
    if (value->is_list() || value->is_map())
      refuse(row_.where, str("field '", name, "' is neither a string nor a list of messages with role and content"));
    return Value::text(value->scalar);
  }

  // The gold answer begins with the prompt that chosen and rejected share, as they do (TRL's _extract_triple_prompt).
  static void take_prompt_from_reference(TypedRow& row) {
    if (row.reference.is_list() && row.prompt.is_list()) {
      const size_t same = row.prompt.items.size();
      std::vector<Value>& items = row.reference.items;
      if (items.size() >= same && std::equal(row.prompt.items.begin(), row.prompt.items.end(), items.begin())) {
        items.erase(items.begin(), items.begin() + std::ptrdiff_t(same));
        return;
      }
    } else if (row.reference.is_text() && row.prompt.is_text() && row.reference.scalar.starts_with(row.prompt.scalar)) {
      row.reference.scalar.erase(0, row.prompt.scalar.size());
      return;
    }
    refuse(row.where, "'reference' does not begin with the prompt that chosen and rejected share",
           "give the field prompt, or begin all three answers with it");
  }

  // A pair without a prompt: what both answers begin with is the prompt.
  static void split_prompt(TypedRow& row) {
    if (row.chosen.is_list() && row.rejected.is_list()) {
      size_t same = 0;
      const size_t most = std::min(row.chosen.items.size(), row.rejected.items.size());
      while (same < most && row.chosen.items[same] == row.rejected.items[same]) ++same;
      row.prompt = Value::list();
      row.prompt.items.assign(row.chosen.items.begin(), row.chosen.items.begin() + same);
      row.chosen.items.erase(row.chosen.items.begin(), row.chosen.items.begin() + same);
      row.rejected.items.erase(row.rejected.items.begin(), row.rejected.items.begin() + same);
      return;
    }
    std::string &chosen = row.chosen.scalar, &rejected = row.rejected.scalar;
    size_t same = 0;
    while (same < chosen.size() && same < rejected.size() && chosen[same] == rejected[same]) ++same;
    while (same > 0 && same < chosen.size() && (chosen[same] & 0xC0) == 0x80) --same;  // not inside a character
    if (same > 0 && chosen[same - 1] == ' ') --same;  // a space belongs to the word that follows it
    row.prompt = Value::text(chosen.substr(0, same));
    chosen.erase(0, same);
    rejected.erase(0, same);
  }

  bool conversational(const TypedRow& row) const {
    int lists = 0, texts = 0;
    if (row.kind == RowKind::labelled) return false;
    for (const Value* value : {&row.text, &row.prompt, &row.completion, &row.chosen, &row.rejected, &row.reference}) {
      lists += value->is_list();
      texts += value->is_text();
    }
    if (lists && texts)
      refuse(row_.where, "the row mixes texts and lists of messages",
             "give all of prompt, completion, chosen, rejected in one form");
    return lists > 0;
  }

  Value parsed(const Value& tools) const {
    return tools.is_text() ? parse_json(tools.scalar, row_.where + ": tools") : tools;
  }

  Row row_;
  const FieldRules& rules_;
  bool chosen_text_ = false;
};

}  // namespace

TypedRow typed(Row row, const FieldRules& rules) {
  const double weight = weight_of(row, rules);
  std::optional<TypedRow> parts = typed_parts(row, rules);
  if (parts && rules.all_columns) parts->columns = row.fields;
  TypedRow out = parts ? std::move(*parts) : Reader(std::move(row), rules).read();
  out.weight = weight;
  return out;
}

}  // namespace easydel::data
