#include "easydel/train/rewards.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"
#include "easydel/text/constrain/constraint.h"
#include "easydel/text/constrain/stacks.h"

namespace easydel::train {
namespace {

// A reward that judges each completion alone.
class EachAlone final : public CompletionReward {
 public:
  using Judge = std::function<std::optional<double>(const Judged&)>;
  explicit EachAlone(Judge judge) : judge_(std::move(judge)) {}
  std::vector<std::optional<double>> score(std::span<const Judged> completions) override {
    std::vector<std::optional<double>> out;
    for (const Judged& one : completions) out.push_back(judge_(one));
    return out;
  }

 private:
  Judge judge_;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What the last \boxed{} holds, with balanced braces; nullopt: there is none.
std::optional<std::string_view> boxed_in(std::string_view text) {
  constexpr std::string_view begin = "\\boxed{";
  const size_t at = text.rfind(begin);
  if (at == std::string_view::npos) return std::nullopt;
  int depth = 1;
  for (size_t i = at + begin.size(); i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) return text.substr(at + begin.size(), i - at - begin.size());
  }
  return std::nullopt;
}

// The last number: digits with separators of thousands, a fraction or decimals, and a sign.
std::string_view last_number(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0) {
    const char c = text[begin - 1];
    const bool between = (c == ',' || c == '.' || c == '/') && begin >= 2 && is_digit(text[begin - 2]);
    if (!is_digit(c) && !between) break;
    --begin;
  }
  if (begin > 0 && begin < end && text[begin - 1] == '.') --begin;
  if (begin > 0 && begin < end && text[begin - 1] == '-') --begin;
  return text.substr(begin, end - begin);
}

// Without what may stand around a number: spaces, currency, separators, a final stop.
std::string stripped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool separator = c == ',' && i > 0 && is_digit(text[i - 1]) && i + 1 < text.size() && is_digit(text[i + 1]);
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '$' || separator) continue;
    out += c;
  }
  while (!out.empty() && (out.back() == '.' || out.back() == '%')) out.pop_back();
  return out;
}

struct Rational {
  __int128 numerator = 0, denominator = 1;
};

__int128 greatest_divisor(__int128 a, __int128 b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a < 0 ? -a : a;
}

std::optional<Rational> decimal(std::string_view text) {
  Rational out;
  bool negative = false, after_point = false, any = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+'))
    negative = text.front() == '-', text.remove_prefix(1);
  if (text.size() > 30) return std::nullopt;  // beyond what 128 bits hold
  for (const char c : text) {
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    out.numerator = out.numerator * 10 + (c - '0');
    if (after_point) out.denominator *= 10;
    any = true;
  }
  if (!any) return std::nullopt;
  if (negative) out.numerator = -out.numerator;
  return out;
}

std::optional<Rational> rational(std::string_view text) {
  for (const std::string_view form : {"\\frac{", "\\dfrac{", "\\tfrac{"})
    if (text.starts_with(form) && text.ends_with('}')) {
      const std::string_view inside = text.substr(form.size(), text.size() - form.size() - 1);
      const size_t middle = inside.find("}{");
      if (middle == std::string_view::npos) return std::nullopt;
      return rational(std::string(inside.substr(0, middle)) + "/" + std::string(inside.substr(middle + 2)));
    }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return decimal(text);
  const auto over = decimal(text.substr(0, slash)), under = decimal(text.substr(slash + 1));
  // Products of two such numbers would not fit into 128 bits.
  if (!over || !under || under->numerator == 0 || text.size() > 36) return std::nullopt;
  return Rational{over->numerator * under->denominator, over->denominator * under->numerator};
}

Rational reduced(Rational number) {
  const __int128 divisor = greatest_divisor(number.numerator, number.denominator);
  if (divisor != 0) number.numerator /= divisor, number.denominator /= divisor;
  if (number.denominator < 0) number.numerator = -number.numerator, number.denominator = -number.denominator;
  return number;
}

std::optional<double> judge_answer(const Judged& one, const std::string& key) {
  if (!has_right_answer(one.row, key)) return std::nullopt;
  const std::string& text = one.row.find(key)->scalar;
  const bool worked_out = text.find("####") != std::string::npos || text.find("\\boxed{") != std::string::npos;
  const std::string given = answer_in(one.completion);
  return !given.empty() && same_answer(given, worked_out ? answer_in(text) : text) ? 1.0 : 0.0;
}

double judge_repetition(std::span<const int32_t> ids, size_t ngram) {
  if (ids.size() < ngram + 1) return 0;
  std::unordered_set<std::string> seen;
  const size_t all = ids.size() - ngram + 1;
  for (size_t i = 0; i < all; ++i) seen.emplace(reinterpret_cast<const char*>(&ids[i]), ngram * sizeof(int32_t));
  return -double(all - seen.size()) / double(all);
}

// What of a text is not blank at its ends.
std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

double judge_json(std::string_view text) {
  try {
    parse_json(without_blanks(text), "completion");
    return 1;
  } catch (const UserError&) {
    return 0;
  }
}

using text::constrain::Automaton;

std::shared_ptr<const Automaton> compiled_schema(const Value& schema) {
  using text::constrain::Language;
  return text::constrain::compile(
      {.kind = Language::Kind::json_schema, .source = schema.is_text() ? schema.scalar : to_json(schema)});
}

// Whether the whole text is one of the language.
bool is_in(const Automaton& language, std::string_view text) {
  text::constrain::Stacks stacks(language);
  text::constrain::Position at = stacks.begin(), next;
  for (const char c : text) {
    stacks.step(at, uint8_t(c), next);
    std::swap(at, next);
    if (at.dead()) return false;
    stacks.compact(at);
  }
  return at.may_end;
}

std::map<std::string, RewardFunction>& functions() {
  static std::map<std::string, RewardFunction> all;
  return all;
}

RewardFunction registered(const std::string& name) {
  if (const auto found = functions().find(name); found != functions().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, function] : functions()) known.push_back(other);
  refuse("trainer.rewards", "no plug-in has a reward function '" + name + "'",
         known.empty() ? std::string("load the plug-in that has it (--plugin)") : "there are: " + join(known, ", "));
}

EachAlone::Judge judge_of(const RewardEntry& entry) {
  switch (entry.type) {
    case RewardType::answer:
      return [key = entry.answer_key](const Judged& one) { return judge_answer(one, key); };
    case RewardType::format:
      return [pattern = RegularExpression(*entry.pattern)](const Judged& one) {
        return pattern.found_in(one.completion) ? 1.0 : 0.0;
      };
    case RewardType::length:
      return [target = double(*entry.target)](const Judged& one) {
        return -std::max(0.0, double(one.ids.size()) - target) / target;
      };
    case RewardType::contains:
      return [words = entry.words](const Judged& one) {
        const auto found = std::ranges::count_if(
            words, [&](const std::string& word) { return one.completion.find(word) != std::string_view::npos; });
        return double(found) / double(words.size());
      };
    case RewardType::json:
      if (entry.schema.is_null()) return [](const Judged& one) { return judge_json(one.completion); };
      return [schema = compiled_schema(entry.schema)](const Judged& one) {
        return is_in(*schema, without_blanks(one.completion)) ? 1.0 : 0.0;
      };
    case RewardType::plugin:
      return registered(*entry.function);
    case RewardType::repetition:
      return [ngram = size_t(entry.ngram)](const Judged& one) { return judge_repetition(one.ids, ngram); };
    default:
      throw Bug("a reward without a rule");
  }
}

}  // namespace

std::string answer_in(std::string_view text) {
  if (const auto boxed = boxed_in(text)) return std::string(*boxed);
  if (const size_t mark = text.rfind("####"); mark != std::string_view::npos) {
    const std::string_view rest = text.substr(mark + 4);
    return stripped(rest.substr(0, rest.find('\n')));
  }
  return std::string(last_number(text));
}

bool same_answer(std::string_view a, std::string_view b) {
  const std::string left = stripped(a), right = stripped(b);
  const auto x = rational(left), y = rational(right);
  if (!x || !y) return left == right;
  const Rational p = reduced(*x), q = reduced(*y);
  return p.numerator == q.numerator && p.denominator == q.denominator;
}

bool has_right_answer(const Value& row, const std::string& key) {
  const Value* const right = row.find(key);
  return right && !right->is_null() && !right->is_list() && !right->is_map();
}

bool give_only_equal(std::span<const RewardEntry> entries, const Value& row) {
  return std::ranges::all_of(entries, [&](const RewardEntry& entry) {
    return entry.type == RewardType::answer && !has_right_answer(row, entry.answer_key);
  });
}

Value document_of(const Judged& one, int64_t id) {
  Value out = Value::map(), ids = Value::list();
  out.set("id", Value::integer(id));
  out.set("prompt", Value::text(std::string(one.prompt)));
  out.set("completion", Value::text(std::string(one.completion)));
  for (const int32_t token : one.ids) ids.items.push_back(Value::integer(token));
  out.set("ids", std::move(ids));
  out.set("row", one.row);
  return out;
}

void register_reward(const std::string& name, RewardFunction function) {
  check(function != nullptr, "a reward function that is null");
  if (!functions().emplace(name, function).second)
    refuse("plug-in", "the reward function '" + name + "' is there already", "give it another name");
}

std::vector<NamedReward> build_rewards(const std::vector<RewardEntry>& given, const ModelRewards* models) {
  std::vector<NamedReward> out;
  std::set<std::string> names;
  std::vector<RewardEntry> entries = given;
  const auto is_model = [](const RewardEntry& entry) { return entry.type == RewardType::model && !entry.model; };
  if (models && models->has_section() && std::ranges::none_of(given, is_model)) {
    RewardEntry& section = entries.emplace_back();
    section.type = RewardType::model;
    section.name = "reward_model";
  }
  for (const RewardEntry& entry : entries) {
    const std::string name = entry.name.value_or(std::string(config::word_of(entry.type)));
    if (!names.insert(name).second)
      refuse("trainer.rewards", "two of them are named '" + name + "'", "give one of them another name");
    const std::string where = "trainer.rewards: " + name;
    std::unique_ptr<CompletionReward> made;
    switch (entry.type) {
      case RewardType::program:
        made = program_reward(name, entry);
        break;
      case RewardType::http:
        made = http_reward(name, entry);
        break;
      case RewardType::model:
        check(models != nullptr, "rewards of models without what builds them");
        if (!entry.model && !models->has_section())
          refuse(where, "names no model, and there is no section reward_model", "give `model: FOLDER`, or the section");
        made = models->build(entry.model ? &*entry.model : nullptr, where);
        break;
      default:
        made = std::make_unique<EachAlone>(judge_of(entry));
    }
    out.push_back({name, entry.weight, std::move(made), is_model(entry)});
  }
  return out;
}

}  // namespace easydel::train
