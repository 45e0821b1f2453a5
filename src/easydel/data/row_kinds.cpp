#include "easydel/data/row_kinds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::data {
namespace {

std::string names_of(const Value& fields) {
  std::vector<std::string> names;
  for (const auto& [name, value] : fields.entries) names.push_back(value.is_null() ? name + " (null)" : name);
  return names.empty() ? "no fields" : join(names, ", ");
}

[[noreturn]] void no_field(const Row& row, const std::string& name, const std::string& remedy) {
  if (row.fields.find(name)) refuse(row.where, str("field '", name, "' is null"), "give it a value, or drop the row");
  refuse(row.where, str("the row has no field '", name, "'; it has: ", names_of(row.fields)), remedy);
}

bool has(const Value& fields, std::string_view name) {
  const Value* value = fields.find(name);
  return value && !value->is_null();
}

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

// Fields of rows with pictures, sound or video, as TRL and LLaVA name them.
constexpr std::array media_fields{"image", "images", "video", "videos", "audio", "audios"};

bool is_empty(const Value& value) {
  return value.is_list()  ? value.items.empty()
         : value.is_map() ? value.entries.empty()
                          : value.is_null() || value.scalar.empty();
}

class Reader {
 public:
  Reader(Row row, const FieldRules& rules) : row_(std::move(row)), rules_(rules) {}

  TypedRow read() {
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
        put_prompt_of_pair(out);
        break;
      case RowKind::tokens:
        break;  // typed_parts
    }
    out.conversational = conversational(out);
    if (const Value* tools = row_.fields.find("tools")) out.tools = parsed(*tools);
    if (const Value* arguments = row_.fields.find("chat_template_kwargs")) out.template_arguments = *arguments;
    return out;
  }

 private:
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
    row_.fields.set(pair ? "prompt" : is_messages(value) ? "messages" : rules_.target_field, std::move(value));
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
    if (!row.prompt_is_shared) return;
    static constexpr std::array used{"chosen", "rejected", "tools", "chat_template_kwargs"};
    for (const auto& [name, value] : row_.fields.entries)
      if (value.is_text() && !value.scalar.empty() && std::ranges::find(used, name) == used.end())
        row.unused_texts.push_back(name);
  }

  RowKind detected() const {
    if (has(row_.fields, "chosen") && has(row_.fields, "rejected")) return RowKind::preference;
    if (has(row_.fields, "prompt") && has(row_.fields, "completion") && !chosen_text_)
      return RowKind::prompt_completion;
    if (is_instruction() && has(row_.fields, "output") && !chosen_text_ && !standard())
      return RowKind::prompt_completion;
    if (has(row_.fields, "messages") || has(row_.fields, "conversations")) return RowKind::messages;
    if (has(row_.fields, rules_.target_field)) return RowKind::text;
    no_field(row_, rules_.target_field,
             str("name the field with the text by ", rules_.inform,
                 ".content_field; or give messages, prompt + completion, instruction + output, or prompt + chosen + "
                 "rejected"));
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
    for (const Value* value : {&row.text, &row.prompt, &row.completion, &row.chosen, &row.rejected}) {
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
  static constexpr std::array all{Words{RowKind::text, "texts"}, Words{RowKind::messages, "messages"},
                                  Words{RowKind::prompt_completion, "prompt + completion"},
                                  Words{RowKind::preference, "prompt + chosen + rejected"}};
  std::vector<std::string> words;
  for (const Words& one : all)
    if (kinds.has(one.kind)) words.emplace_back(one.fields);
  if (words.size() > 1) words.back() = "or " + words.back();
  return join(words, words.size() > 2 ? ", " : " ");
}

std::vector<std::string> fields_read(const FieldRules& rules) {
  std::vector<std::string> out{"text",        "content", "messages", "conversations", "prompt",
                               "completion",  "chosen",  "rejected", "tools",         "chat_template_kwargs",
                               "instruction", "input",   "output"};
  out.insert(out.end(), media_fields.begin(), media_fields.end());
  out.insert(out.end(), token_fields.begin(), token_fields.end());
  out.insert(out.end(), {"input_ids", rules.tokens_field, rules.target_field});
  if (rules.weight_field) out.push_back(*rules.weight_field);
  if (rules.content_field) out.push_back(*rules.content_field);
  out.insert(out.end(), rules.additional_fields.begin(), rules.additional_fields.end());
  return out;
}

namespace {

double weight_of(const Row& row, const FieldRules& rules) {
  if (!rules.weight_field) return 1;
  const Value* const value = row.fields.find(*rules.weight_field);
  if (!value || value->is_null())
    no_field(row, *rules.weight_field, str("give every row a weight, or drop ", rules.inform, ".weight_field"));
  const auto weight = value->as_double();
  if (!weight || !std::isfinite(*weight) || *weight < 0)
    refuse(row.where, str("field '", *rules.weight_field, "' holds ", to_yaml_flow(*value), ", which is not a weight"),
           "give a number from 0; 0 leaves the row out of the loss");
  return *weight;
}

// A row that is neither a text nor a conversation yet: ready tokens, or a text in segments.
std::optional<TypedRow> typed_parts(const Row& row, const FieldRules& rules) {
  TypedRow out;
  out.where = row.where;
  if (rules.has_segments) {
    out.segments = *row.fields.find("segments");
    return out;
  }
  if (rules.kind && *rules.kind != RowKind::tokens) return std::nullopt;
  const std::string ids = ids_field(row, rules.tokens_field);
  const bool has_text = has(row.fields, "messages") || has(row.fields, rules.target_field) || rules.content_field;
  if (ids.empty() && rules.kind == RowKind::tokens)
    no_field(row, rules.tokens_field, "name the field with the tokens by mixture.tokens_field_name");
  if (ids.empty() || (has_text && !rules.kind)) return std::nullopt;
  out.kind = RowKind::tokens;
  out.tokens = std::make_shared<const TokenRow>(token_row(row, ids));
  return out;
}

}  // namespace

TypedRow typed(Row row, const FieldRules& rules) {
  const double weight = weight_of(row, rules);
  std::optional<TypedRow> parts = typed_parts(row, rules);
  TypedRow out = parts ? std::move(*parts) : Reader(std::move(row), rules).read();
  out.weight = weight;
  return out;
}

}  // namespace easydel::data
