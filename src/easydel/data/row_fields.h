// Names and values of the fields of rows, shared by the files that read row kinds.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/data/row_kinds.h"

namespace easydel::data {

// Fields of rows with pictures, sound or video, as TRL and LLaVA name them.
inline constexpr std::array media_fields{"image", "images", "video", "videos", "audio", "audios"};

// Fields of labelled rows, as the datasets of transformers' examples name them.
inline constexpr std::array label_fields{"label", "labels", "ner_tags", "tags"};
inline constexpr std::array text_fields{"text", "tokens", "words", "sentence", "sentence1", "premise", "question"};
inline constexpr std::array question_fields{"question", "context", "answers"};  // of a labelled row, all of them
inline constexpr std::array pair_fields{"text_pair", "sentence2", "hypothesis"};

bool has(const Value& fields, std::string_view name);  // and it is not null
[[noreturn]] void no_field(const Row& row, const std::string& name, const std::string& remedy);

// The field that a row lacks to be of one of the kinds `meant`: the one that has the most of its fields. Empty: the row
// has no field of theirs that `fitting`, the kind whose fields it has all, would leave unused. `text_field`: the name
// of a text's field.
std::string missing_field(const Value& fields, RowKinds meant, std::optional<RowKind> fitting,
                          const std::string& text_field);

// The weight that the rules' field gives the row; 1 without such a field. UserError: it is not a weight.
double weight_of(const Row& row, const FieldRules& rules);
// Whether a completion or a step is good, as a boolean. UserError: the field holds neither one nor 0 or 1.
Value mark_of(const Row& row, const Value& value, const std::string& name);
// A row that is neither a text nor a conversation yet: ready tokens, or a text in segments. Nothing: it is another one.
std::optional<TypedRow> typed_parts(const Row& row, const FieldRules& rules);

}  // namespace easydel::data
