// Which tokens of a conversation are learned, and with which weight: rules of an inform, and marks on messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "easydel/data/part_places.h"
#include "easydel/text/render_chat.h"

namespace easydel::data {

enum class TrainOnTurns : uint8_t { all, last };
enum class TrainOnEos : uint8_t { turn, all, last, none };

struct LearnRules {
  std::vector<std::string> roles;  // empty: the assistant's
  TrainOnTurns turns = TrainOnTurns::all;
  TrainOnEos eos = TrainOnEos::turn;
};

// What a message or a part of its content says by `train`, `weight` or `loss_weight`: its weight, 0 for `train: false`.
// Nothing: it says none of them. UserError, without a place: it is not a boolean or a weight from 0.
std::optional<double> mark_of(const Value& marked);
const Value* parts_of(const Value& message);         // nullptr: its content is not a list of parts
const std::string* text_of_part(const Value& part);  // nullptr: it is not a text

// Whether a message, or a part of its content, says one of them.
bool has_marks(const Value& messages);
// Whether one of them says something else than that it is learned with weight 1. UserError, without a place: a mark is
// not a boolean or a weight from 0.
bool has_effect(const Value& messages);
// The messages as templates read them: contents of text parts with marks are joined to one text.
Value without_part_marks(const Value& messages);

struct LearnedTokens {
  std::vector<uint8_t> learn;  // for each token
  std::vector<float> weights;  // for each token; empty: all 1
  bool masks_turn = false;     // nothing is learned of a turn that the rules learn, though no mark says so
};

// The learned tokens of a rendered conversation. `only_turns`: nothing but the roles' turns is learned; else all tokens
// are, except those of messages that say no. `render` is asked where marked parts are. UserError, without a place: a
// mark is not a boolean or a weight from 0, or it cannot be proven where a marked part or a trained turn is.
LearnedTokens learned_tokens(const Value& messages, const text::RenderedTurns& turns, const LearnRules& rules,
                             bool only_turns, const RenderText& render);

}  // namespace easydel::data
