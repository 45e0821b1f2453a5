#include "easydel/data/statistics.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/base/text_table.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/learn_rules.h"
#include "easydel/text/render_chat.h"

namespace easydel::data {
namespace {

constexpr std::array strategies{Packing::greedy, Packing::bfd, Packing::bfd_split, Packing::first_fit,
                                Packing::wrapped};

std::string_view word_of(Packing packing) {
  for (const auto& choice : choices(packing))
    if (choice.value == packing) return choice.name;
  return "";
}

// A number that equal tokens share; two examples in 2^64 are taken for equal by mistake.
uint64_t digest(const Example& example) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const int32_t token : example.tokens) {
    hash = (hash ^ uint32_t(token)) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

void count_roles(const TypedRow& row, std::map<std::string, int64_t>& roles) {
  for (const Value* part : {&row.text, &row.prompt, &row.completion, &row.chosen, &row.rejected})
    for (const Value& message : part->is_list() ? part->items : std::vector<Value>())
      if (const Value* const role = message.is_map() ? message.find("role") : nullptr) ++roles[role->scalar];
}

// The conversations of a row. In those of a pair only the answers' own messages count from `first` on.
struct Conversation {
  Value messages;
  size_t first = 0;
};

std::vector<Conversation> conversations_of(const TypedRow& row) {
  std::vector<Conversation> out;
  if (!row.conversational) return out;
  if (row.text.is_list()) return {{row.text, 0}};
  if (!row.prompt.is_list()) return out;
  for (const Value* answer : {&row.completion, &row.chosen, &row.rejected}) {
    if (!answer->is_list()) continue;
    Conversation one{row.prompt, out.empty() ? 0 : row.prompt.items.size()};
    one.messages.items.insert(one.messages.items.end(), answer->items.begin(), answer->items.end());
    out.push_back(std::move(one));
  }
  if (out.empty()) out.push_back({row.prompt, 0});
  return out;
}

// Counts the tokens of roles. Thread-safe.
class RoleTokens {
 public:
  explicit RoleTokens(std::shared_ptr<const text::Tokenizer> tokenizer) {
    if (tokenizer && tokenizer->chat_template()) renderer_.emplace(std::move(tokenizer));
  }

  void count(const TypedRow& row) {
    if (!renderer_) return;
    std::map<std::string, int64_t> found;
    bool is_told = true;
    for (const Conversation& one : conversations_of(row)) {
      try {
        const text::RenderedTurns turns =
            renderer_->with_turns(without_part_marks(one.messages), {row.tools, false, row.template_arguments});
        for (const int32_t message : turns.messages) {
          if (message >= 0 && size_t(message) < one.first) continue;
          if (message < 0 && one.first > 0) continue;
          const Value* const role = message < 0 ? nullptr : one.messages.items.at(size_t(message)).find("role");
          ++found[role ? role->scalar : "template"];
        }
      } catch (const UserError&) {
        is_told = false;
      }
    }
    const std::scoped_lock lock(mutex_);
    untold_ += !is_told;
    for (const auto& [role, tokens] : found) tokens_[role] += tokens;
  }
  const std::map<std::string, int64_t>& tokens() const { return tokens_; }
  int64_t untold() const { return untold_; }

 private:
  std::optional<text::ChatRenderer> renderer_;
  std::mutex mutex_;
  std::map<std::string, int64_t> tokens_;
  int64_t untold_ = 0;
};

PackingStatistics packed_by(Packing packing, const ExampleBlocks& documents, int64_t row_length) {
  PackingStatistics out{std::string(word_of(packing)), {}, 0};
  std::vector<int64_t> all(size_t(documents.size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  PackedRows rows(packing, row_length);
  rows.add(documents, all, out.report);
  if (rows.size() > 0) out.density = double(out.report.tokens) / double(rows.size() * row_length);
  return out;
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

struct Bar {
  int32_t first = 0, last = 0;
  int64_t count = 0;
};

// Lengths of all informs in at most 40 equal classes.
std::vector<Bar> histogram(const Statistics& statistics) {
  int32_t shortest = INT32_MAX, longest = 0;
  for (const InformStatistics& inform : statistics.informs) {
    if (inform.lengths.empty()) continue;
    shortest = std::min(shortest, inform.lengths.front());
    longest = std::max(longest, inform.lengths.back());
  }
  std::vector<Bar> out;
  if (longest == 0) return out;
  const int32_t width = (longest - shortest) / 40 + 1;
  for (int32_t first = shortest; first <= longest; first += width) out.push_back({first, first + width - 1, 0});
  for (const InformStatistics& inform : statistics.informs)
    for (const int32_t length : inform.lengths) ++out[size_t((length - shortest) / width)].count;
  return out;
}

constexpr std::array shares{0.5, 0.9, 0.99};

// "  talk: 2 of user, 40 tokens".
std::string lines_of_roles(const InformStatistics& one) {
  std::string out;
  for (const auto& [role, count] : one.roles) {
    const auto tokens = one.role_tokens.find(role);
    out += str("  ", one.name, ": ", count, " of ", role,
               tokens == one.role_tokens.end() ? "" : ", " + counted(tokens->second, "token"), "\n");
  }
  if (const auto rest = one.role_tokens.find("template"); rest != one.role_tokens.end())
    out += str("  ", one.name, ": ", counted(rest->second, "token"), " of the template beside messages\n");
  if (one.untold)
    out += str("  ", one.name, ": ", counted(one.untold, "row"),
               " whose messages cannot be told apart in what the template writes; their tokens are not counted\n");
  return out;
}

}  // namespace

int32_t percentile(const std::vector<int32_t>& lengths, double share) {
  if (lengths.empty()) return 0;
  const auto at = size_t(std::ceil(share * double(lengths.size())));
  return lengths[std::clamp<size_t>(at, 1, lengths.size()) - 1];
}

std::string percent_text(int64_t part, int64_t all) { return percent(all > 0 ? double(part) / double(all) : 0); }

Statistics statistics_of(const RunData& data) {
  if (!data.training) refuse("mixture.informs", "there is no data to train on", "give an inform with split: train");
  const DatasetOptions& options = *data.training;
  Statistics out;
  ReadExamples read;
  std::set<uint64_t> seen;
  std::set<int32_t> special;
  const std::vector<std::string> names = names_of(options.informs);
  for (size_t i = 0; i < options.informs.size(); ++i) {
    InformStatistics& inform = out.informs.emplace_back();
    inform.name = names[i];
    RoleTokens tokens(data.tokenizer);
    const Prepare prepare = [&](const TypedRow& row) {
      Prepared prepared = data.prepare(row);
      tokens.count(row);
      return prepared;
    };
    InformReader(options, i, prepare).read([&](PreparedRow& row) {
      if (row.ends_file) throw *row.error;
      ++inform.rows;
      if (row.error) return ++inform.bad, true;
      count_roles(row.row, inform.roles);
      inform.cut_rows += row.prepared.cut_tokens > 0;
      inform.cut_tokens += row.prepared.cut_tokens;
      inform.mistakes.add(row.prepared.all_mistakes(), row.row.where);
      special.insert(row.prepared.special.begin(), row.prepared.special.end());
      if (!row.prepared.example) return ++inform.dropped, true;
      const Example& example = *row.prepared.example;
      ++inform.examples;
      inform.tokens += int64_t(example.tokens.size());
      inform.learned += example.labelled();
      inform.lengths.push_back(int32_t(example.tokens.size()));
      inform.duplicates += !seen.insert(digest(example)).second;
      read.examples.add(example);
      return true;
    });
    inform.role_tokens = tokens.tokens(), inform.untold = tokens.untold();
    read.sizes.push_back(inform.examples);
    std::ranges::sort(inform.lengths);
  }
  out.never_stops = data.tokenizer ? never_stops(data.end_tokens, special, *data.tokenizer) : "";
  out.row_length = options.row_length > 0 ? options.row_length : data.max_length.value_or(0);
  read.examples.finish();
  const log::Quiet quiet;
  if (data.packs && out.row_length > 0)
    for (const Packing packing : strategies) out.packings.push_back(packed_by(packing, read.examples, out.row_length));
  if (read.examples.size() == 0) return out;
  out.examples_in_epoch = Dataset::assemble(options, std::move(read)).size();
  out.updates_in_epoch = (out.examples_in_epoch + data.examples_per_update - 1) / data.examples_per_update;
  if (data.max_steps_in_epoch) out.updates_in_epoch = std::min(out.updates_in_epoch, *data.max_steps_in_epoch);
  return out;
}

Value document_of(const Statistics& statistics) {
  Value out = Value::map(), informs = Value::list(), packings = Value::list();
  for (const InformStatistics& inform : statistics.informs) {
    Value& one = informs.items.emplace_back();
    one.set("name", Value::text(inform.name));
    const std::array<std::pair<const char*, int64_t>, 9> counts{{{"rows", inform.rows},
                                                                 {"bad", inform.bad},
                                                                 {"dropped", inform.dropped},
                                                                 {"cut_rows", inform.cut_rows},
                                                                 {"cut_tokens", inform.cut_tokens},
                                                                 {"examples", inform.examples},
                                                                 {"tokens", inform.tokens},
                                                                 {"learned", inform.learned},
                                                                 {"duplicates", inform.duplicates}}};
    for (const auto& [name, count] : counts) one.set(name, Value::integer(count));
    Value& lengths = one.set("lengths", Value::map());
    lengths.set("min", Value::integer(inform.lengths.empty() ? 0 : inform.lengths.front()));
    for (const double share : shares)
      lengths.set(str("p", int(std::lround(100 * share))), Value::integer(percentile(inform.lengths, share)));
    lengths.set("max", Value::integer(inform.lengths.empty() ? 0 : inform.lengths.back()));
    Value& roles = one.set("messages", Value::map());
    for (const auto& [role, count] : inform.roles) roles.set(role, Value::integer(count));
    Value& tokens = one.set("role_tokens", Value::map());
    for (const auto& [role, count] : inform.role_tokens) tokens.set(role, Value::integer(count));
    one.set("mistakes", inform.mistakes.document());
  }
  for (const PackingStatistics& packing : statistics.packings) {
    Value& one = packings.items.emplace_back();
    one.set("strategy", Value::text(packing.strategy));
    one.set("rows", Value::integer(packing.report.rows));
    one.set("tokens", Value::integer(packing.report.tokens));
    one.set("split", Value::integer(packing.report.split));
    one.set("cut_tokens", Value::integer(packing.report.cut_tokens));
    one.set("density", Value::number(packing.density));
  }
  out.set("informs", std::move(informs));
  out.set("row_length", Value::integer(statistics.row_length));
  out.set("packing", std::move(packings));
  out.set("examples_in_epoch", Value::integer(statistics.examples_in_epoch));
  out.set("updates_in_epoch", Value::integer(statistics.updates_in_epoch));
  return out;
}

std::string text_of(const Statistics& statistics) {
  std::vector<std::vector<std::string>> table{{"inform", "rows", "bad", "left out", "cut", "examples", "tokens",
                                               "learned", "duplicates", "shortest", "median", "90 %", "99 %",
                                               "longest"}};
  std::string roles, mistakes;
  for (const InformStatistics& one : statistics.informs) {
    const auto number = [](int64_t count) { return std::to_string(count); };
    table.push_back({one.name, number(one.rows), number(one.bad), number(one.dropped),
                     one.cut_rows ? str(one.cut_rows, " (", counted(one.cut_tokens, "token"), ")") : "0",
                     number(one.examples), number(one.tokens), percent_text(one.learned, one.tokens),
                     number(one.duplicates), number(percentile(one.lengths, 0))});
    for (const double share : {shares[0], shares[1], shares[2], 1.0})
      table.back().push_back(number(percentile(one.lengths, share)));
    roles += lines_of_roles(one);
    for (const std::string& line : one.mistakes.lines(one.rows)) mistakes += str("  ", one.name, ": ", line, "\n");
  }
  std::string out = text_table(table);
  if (!roles.empty()) out += "\nmessages\n" + roles;
  if (!statistics.never_stops.empty()) mistakes += "  " + statistics.never_stops + "\n";
  if (!mistakes.empty()) out += "\nmistakes\n" + mistakes;
  const std::vector<Bar> bars = histogram(statistics);
  int64_t most = 1;
  for (const Bar& bar : bars) most = std::max(most, bar.count);
  std::vector<std::vector<std::string>> lines;
  for (const Bar& bar : bars)
    lines.push_back({bar.first == bar.last ? std::to_string(bar.first) : str(bar.first, "-", bar.last),
                     std::to_string(bar.count), std::string(size_t((40 * bar.count + most - 1) / most), '#')});
  if (!lines.empty()) out += "\ntokens of an example\n" + text_table(lines);
  if (!statistics.packings.empty()) {
    table = {{"packing", "rows", "density", "split", "tokens lost"}};
    for (const PackingStatistics& one : statistics.packings)
      table.push_back({one.strategy, std::to_string(one.report.rows), percent(one.density),
                       std::to_string(one.report.split), std::to_string(one.report.cut_tokens)});
    out += str("\npacked into rows of ", counted(statistics.row_length, "token"), "\n", text_table(table));
  }
  return out + str("\n", counted(statistics.examples_in_epoch, "example"), " and ",
                   counted(statistics.updates_in_epoch, "update"), " in an epoch\n");
}

std::string length_picture(const Statistics& statistics) {
  const std::vector<Bar> bars = histogram(statistics);
  int64_t most = 1;
  for (const Bar& bar : bars) most = std::max(most, bar.count);
  const int64_t width = 16, height = 200, room = 24;
  std::string out = str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width * int64_t(bars.size()) + 2 * room,
                        "\" height=\"", height + 2 * room, "\" font-family=\"sans-serif\" font-size=\"10\">\n",
                        "<title>Tokens of an example</title>\n");
  for (size_t i = 0; i < bars.size(); ++i) {
    const int64_t tall = height * bars[i].count / most;
    out += str("<rect x=\"", room + width * int64_t(i), "\" y=\"", room + height - tall, "\" width=\"", width - 1,
               "\" height=\"", tall, "\" fill=\"#4a7\"><title>", bars[i].first, " to ", bars[i].last, ": ",
               bars[i].count, "</title></rect>\n");
    if (i % 5 == 0)
      out += str("<text x=\"", room + width * int64_t(i), "\" y=\"", room + height + 14, "\">", bars[i].first,
                 "</text>\n");
  }
  return out + str("<text x=\"", room, "\" y=\"", room - 8, "\">at most ", counted(most, "example"),
                   " of a length class</text>\n</svg>\n");
}

}  // namespace easydel::data
