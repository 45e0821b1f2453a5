#include "easydel/generation/constrained.h"

#include <algorithm>
#include <list>

#include "easydel/base/error.h"

namespace easydel::generation {
namespace {

using text::constrain::Constraint;
using text::constrain::Matcher;

class ConstrainedSequences {
 public:
  ConstrainedSequences(std::shared_ptr<const Constraint> constraint, size_t prompt)
      : constraint_(std::move(constraint)),
        prompt_(prompt),
        mask_(text::constrain::mask_words(constraint_->tokens().size())) {}

  std::span<const uint64_t> next(std::span<const TokenId> tokens) {
    const std::span<const TokenId> prompt = tokens.first(std::min(prompt_, tokens.size()));
    tokens = tokens.subspan(prompt.size());
    Matcher& matcher = matcher_of(prompt, tokens);
    matcher.fill(mask_);
    if (std::ranges::all_of(mask_, [](uint64_t word) { return word == 0; }))
      refuse("constrained output",
             str("after ", tokens.size(), " tokens no token of this vocabulary can go on with '", tail(tokens), "'"),
             "allow a text that the tokenizer can write");
    return mask_;
  }

 private:
  struct Known {
    std::vector<TokenId> tokens;
    Matcher matcher;
  };
  static constexpr size_t most = 64;  // sequences, with those that beams continue

  // The longest known beginning goes on; the others stay, because beams continue one sequence in several ways.
  Matcher& matcher_of(std::span<const TokenId> prompt, std::span<const TokenId> tokens) {
    Known* best = nullptr;
    for (Known& known : known_) {
      // Sizes first: of one sequence the newest beginning is the longest, so the others are not compared.
      if (known.tokens.size() > tokens.size() || (best && known.tokens.size() <= best->tokens.size())) continue;
      if (std::ranges::equal(known.tokens, tokens.first(known.tokens.size()))) best = &known;
    }
    if (best && best->tokens.size() == tokens.size()) return best->matcher;
    Known next{{}, best ? best->matcher : Matcher(constraint_, place_after(prompt))};
    for (size_t i = best ? best->tokens.size() : 0; i < tokens.size(); ++i)
      if (!next.matcher.accept(tokens[i]))
        refuse("constrained output",
               str("the token ", tokens[i], " came, which is not allowed after '", tail(tokens.first(i)), "'"),
               "do not force tokens (forced_bos_token_id, forced_eos_token_id) together with a constraint");
    next.tokens.assign(tokens.begin(), tokens.end());
    known_.push_front(std::move(next));
    if (known_.size() > most) known_.pop_back();
    return known_.front().matcher;
  }

  // A continuation has the space that its first token brings, which a text would drop at its start.
  text::TextPlace place_after(std::span<const TokenId> prompt) const {
    text::TextPlace place = text::TextPlace::start;
    for (const TokenId token : prompt) constraint_->tokens().bytes(token, place);
    return place;
  }

  std::string tail(std::span<const TokenId> tokens) const {
    constexpr size_t shown = 8;
    return constraint_->tokens().tokenizer().decode(tokens.last(std::min(shown, tokens.size())), true, false);
  }

  std::shared_ptr<const Constraint> constraint_;
  size_t prompt_;
  std::vector<uint64_t> mask_;
  std::list<Known> known_;  // the newest first
};

}  // namespace

AllowedTokens allowed_by(std::shared_ptr<const Constraint> constraint, size_t prompt) {
  return [state = std::make_shared<ConstrainedSequences>(std::move(constraint), prompt)](
             std::span<const TokenId> tokens) { return state->next(tokens); };
}

}  // namespace easydel::generation
