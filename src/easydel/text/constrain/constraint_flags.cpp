#include "easydel/text/constrain/constraint_flags.h"

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::text::constrain {

std::optional<Language> language_of(const ConstraintFlags& flags, const std::string& where) {
  using Kind = Language::Kind;
  std::vector<std::string> given;
  if (flags.json_schema) given.emplace_back("--json-schema");
  if (flags.json_object) given.emplace_back("--json-object");
  if (flags.regex) given.emplace_back("--regex");
  if (flags.grammar) given.emplace_back("--grammar");
  if (!flags.choices.empty()) given.emplace_back("--choice");
  if (given.size() > 1) refuse(where, given[0] + " and " + given[1] + " are two constraints", "give one of them");
  if (flags.after.empty()) {
    if (flags.after_required) refuse(where, "--after-required has no effect without --after", "give --after MARKER");
    if (flags.after_ends) refuse(where, "--after-ends has no effect without --after", "give --after MARKER");
  } else if (given.empty()) {
    refuse(where, "--after has no constraint that could follow it",
           "give --json-schema, --json-object, --regex, --grammar or --choice");
  }
  if (given.empty()) return std::nullopt;
  const Language language = flags.json_schema   ? Language{Kind::json_schema, files::read(*flags.json_schema)}
                            : flags.json_object ? Language{Kind::json_object}
                            : flags.regex       ? Language{Kind::regex, *flags.regex}
                            : flags.grammar     ? Language{Kind::grammar, files::read(*flags.grammar)}
                                                : Language{Kind::choice, "", flags.choices};
  if (flags.after.empty()) return language;
  return Language{.kind = Kind::free_text,
                  .choices = flags.after,
                  .parts = std::vector<Language>(flags.after.size(), language),
                  .min = flags.after_required ? 1 : 0,
                  .ends_text = flags.after_ends};
}

}  // namespace easydel::text::constrain
