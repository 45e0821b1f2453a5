// The constraint on an answer, as a request gives it. No torch.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/text/constrain/language.h"

namespace easydel::esurge {

// One kind of constraint on the answer.
struct GuidedDecoding {
  Value json = {};
  std::optional<std::string> regex = {}, grammar = {};
  std::optional<std::vector<std::string>> choice = {};
  std::optional<bool> json_object = {};
  std::optional<std::string> backend = {};

  static constexpr auto doc = "A constraint that the answer satisfies. Give one kind.";
  template <class G>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&G::json>("JSON schema of the answer, as a document or as text."),
        field<&G::regex>("Regular expression that the whole answer matches."),
        field<&G::grammar>("Grammar of the answer, in GBNF."),
        field<&G::choice>("Texts of which the answer is one."),
        field<&G::json_object>("The answer is any JSON object."),
        field<&G::backend>("Library for constraints.", no_effect("there is one implementation")),
    };
  }
  void settle(config::Keys& keys);
  text::constrain::Language language() const;
};

}  // namespace easydel::esurge
