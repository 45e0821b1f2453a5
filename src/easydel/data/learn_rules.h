// Which tokens of a conversation are learned, and with which weight: rules of an inform, and marks on messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/text/render_chat.h"

namespace easydel::data {

enum class TrainOnTurns : uint8_t { all, last };
enum class TrainOnEos : uint8_t { turn, all, last, none };

struct LearnRules {
  std::vector<std::string> roles;  // empty: the assistant's
  TrainOnTurns turns = TrainOnTurns::all;
  TrainOnEos eos = TrainOnEos::turn;
};

// Whether a message, or a part of its content, says `train`, `weight` or `loss_weight`.
bool has_marks(const Value& messages);
// Whether one of them says something else than that it is learned with weight 1. UserError, without a place: a mark is
// not a boolean or a weight from 0.
bool has_effect(const Value& messages);
// The messages as templates read them: contents of text parts with marks are joined to one text.
Value without_part_marks(const Value& messages);

struct LearnedTokens {
  std::vector<uint8_t> learn;  // for each token
  std::vector<float> weights;  // for each token; empty: all 1
};

// The learned tokens of a rendered conversation. `only_turns`: nothing but the roles' turns is learned; else all tokens
// are, except those of messages that say no. UserError, without a place: a mark is not a boolean or a weight from 0, or
// it cannot be proven where a marked part or a trained turn is.
LearnedTokens learned_tokens(const Value& messages, const text::RenderedTurns& turns, const LearnRules& rules,
                             bool only_turns);

}  // namespace easydel::data
