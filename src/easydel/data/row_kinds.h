// The kind of a row: text, a conversation, a prompt, with its completion, a mark of it, a pair of answers and so on.
// Detected from the names of its fields as in TRL (docs/source/dataset_formats.md), standard or conversational.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/learn_rules.h"
#include "easydel/data/row_images.h"
#include "easydel/data/rows.h"
#include "easydel/data/token_rows.h"

namespace easydel::data {

enum class RowKind : uint8_t {
  text,
  messages,
  prompt_completion,
  preference,
  prompt,
  unpaired,  // a prompt, its completion, and whether that is good
  stepwise,  // a prompt, the steps of its completion, and whether each is right
  contrast,  // a query, a text that matches it, and texts that do not
  labelled,  // a text, two texts or words, with classes or numbers; a question and a text, with the answers in it
  tokens     // ready tokens
};
std::string_view name_of(RowKind kind);  // its word, as above

// A set of kinds.
class RowKinds {
 public:
  constexpr RowKinds() = default;
  constexpr RowKinds(std::initializer_list<RowKind> kinds) {
    for (const RowKind kind : kinds) bits_ |= bit(kind);
  }
  constexpr bool has(RowKind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  static constexpr uint32_t bit(RowKind kind) { return uint32_t{1} << uint32_t(kind); }
  uint32_t bits_ = 0;
};
// The fields that users provide for these kinds: "texts, messages, or prompt + completion".
std::string fields_of(RowKinds kinds);

// A row after its fields were renamed and chosen. `text`, `prompt`, `completion`, `chosen`, `rejected`, `reference` are
// texts, or lists of messages {role, content, ...} where `conversational` says so.
struct TypedRow {
  RowKind kind = RowKind::text;
  bool conversational = false;
  Value text, prompt, completion, chosen, rejected;  // `text` also holds the messages of RowKind::messages
  Value reference;                                   // of a pair: a third answer, the gold one; null: none
  // unpaired: whether the completion is good. stepwise: a list, whether each of `completions` is right. labelled: as
  // the row has it, a class, a number or a list of them.
  Value label;
  Value completions;                 // stepwise: a list of texts
  Value margin;                      // of a pair: how much better the chosen answer is; null: not said
  Value query, positive, negatives;  // contrast: texts; `negatives` is a list, which may be empty
  Value text_pair;                   // labelled: the second text; null: none. The first, or a list of words, is `text`
  Value columns;                     // every field of the row, with FieldRules::all_columns; else null
  Value tools;                       // null: none
  Value template_arguments;          // the row's chat_template_kwargs; null: none
  bool evaluation = false;           // the row is not trained on
  std::string where;
  // Of an instruction (Alpaca): the prompt as a text, for tokenizers without a chat template. Empty: none.
  std::string instruction_text;
  // The pair has no prompt of its own: what both answers begin with was taken.
  bool prompt_is_shared = false;
  std::vector<std::string> unused_texts;  // with prompt_is_shared: other fields that hold texts
  Value segments;                         // of RowKind::text: parts {label, text} that are learned or not; null: none
  std::shared_ptr<const TokenRow> tokens = {};  // of RowKind::tokens
  // Of preference and unpaired: ready tokens instead of texts; null: none.
  std::shared_ptr<const TokenAnswers> answers = {};
  std::shared_ptr<const LearnRules> learn = {};  // of its inform; null: none
  double weight = 1;                             // in the loss
  std::shared_ptr<const RowImages> images = {};  // of an inform with images; null: none
};

// How the fields of an inform's rows are found.
struct FieldRules {
  std::optional<std::string> content_field;  // not given: by the standard names, then `content`
  std::string target_field = "text";         // name of a text row's field if no content_field is given
  std::vector<std::string> additional_fields;
  std::string tokens_field = "tokens";      // of rows of ready tokens
  bool has_segments = false;                // the rows have a list of segments (row_format.h)
  std::optional<std::string> weight_field;  // of the row's weight
  std::optional<RowKind> kind;              // not given: detected
  // The kinds that the reader of the rows takes: of those that fit a row, the first one that it takes is chosen. Empty:
  // all.
  RowKinds taken = {};
  // Fields that the reader knows by other names: (theirs, the name here), where the row has them.
  std::vector<std::pair<std::string, std::string>> names = {};
  bool all_columns = false;  // keep the whole row in TypedRow::columns
  std::string inform;        // "mixture.informs[0]", for messages
};

// Whether one of the fields that hold a text, messages or tokens is there.
bool has_text(const Value& fields, const FieldRules& rules);

// Every field that typed() may look into.
std::vector<std::string> fields_read(const FieldRules& rules);

// UserError "file:line: the row has no field 'text'" with the fields that it has and the key that would help.
TypedRow typed(Row row, const FieldRules& rules);

}  // namespace easydel::data
