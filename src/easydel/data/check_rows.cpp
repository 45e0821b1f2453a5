#include "easydel/data/check_rows.h"

#include <algorithm>
#include <array>
#include <map>

#include "easydel/base/names.h"
#include "easydel/data/inform_reader.h"

namespace easydel::data {
namespace {

// The problem with # for each number and each quoted value.
std::string form_of(const std::string& problem) {
  std::string out;
  for (size_t i = 0; i < problem.size();) {
    const char c = problem[i];
    const size_t close = c == '\'' ? problem.find('\'', i + 1) : std::string::npos;
    if (close != std::string::npos) {
      out += '#';
      i = close + 1;
    } else if (c >= '0' && c <= '9') {
      out += '#';
      while (i < problem.size() && problem[i] >= '0' && problem[i] <= '9') ++i;
    } else {
      out += c;
      ++i;
    }
  }
  return out;
}

// What a limit of length cuts is a problem of its own.
constexpr std::array checked_mistakes{RowMistake::nothing_learned, RowMistake::equal_answers, RowMistake::equal_tokens,
                                      RowMistake::merged_prompt,   RowMistake::equal_group,   RowMistake::open_answer,
                                      RowMistake::masked_answer};
// Rows with these are trained as they are.
constexpr std::array warned_mistakes{RowMistake::merged_prompt, RowMistake::open_answer, RowMistake::masked_answer};

class Groups {
 public:
  explicit Groups(const std::function<void(const BadRow&)>& each) : each_(each) {}

  void add(BadRow row) {
    if (each_) each_(row);
    ++(row.warning ? checked_.warnings : checked_.bad);
    const auto [found, is_new] =
        index_.try_emplace(form_of(row.problem) + "\n" + form_of(row.remedy), checked_.groups.size());
    if (is_new) checked_.groups.push_back({row.problem, row.remedy, true, row.warning, 0, {}});
    BadRowGroup& group = checked_.groups[found->second];
    ++group.count;
    group.alike &= group.problem == row.problem;
    if (group.first.size() < rows_in_group) group.first.push_back(std::move(row));
  }
  void add(const std::string& inform, const UserError& error) {
    const std::string where = Where(error.place, error.where).text();
    add({inform, where, error.problem, error.remedy});
  }

  void read(const DatasetOptions& options, const Prepare& prepare) {
    for (size_t i = 0; i < options.informs.size(); ++i) {
      InformReader reader(options, i, prepare);
      try {
        reader.read([&](PreparedRow& row) {
          check(row, reader.name());
          return true;
        });
      } catch (const UserError& error) {
        add(reader.name(), error);
      }
    }
  }
  CheckedRows checked() && { return std::move(checked_); }

 private:
  void check(PreparedRow& row, const std::string& inform) {
    checked_.rows += !row.ends_file;
    if (row.error) return add(inform, *row.error);
    if (row.prepared.cut_tokens > 0)
      add({inform, row.row.where,
           "the row is longer than its limit and loses " + counted(row.prepared.cut_tokens, "token"),
           "raise trainer.max_length, shorten the row, or keep its other end with trainer.truncation_mode"});
    const RowMistakes mistakes = row.prepared.all_mistakes();
    for (const RowMistake mistake : checked_mistakes)
      if (const MistakeText text = text_of(mistake); mistakes.has(mistake))
        add({inform, row.row.where, text.problem, text.remedy,
             std::ranges::find(warned_mistakes, mistake) != warned_mistakes.end()});
  }

  const std::function<void(const BadRow&)>& each_;
  CheckedRows checked_;
  std::map<std::string, size_t> index_;
};

}  // namespace

CheckedRows check_rows(const RunData& data, const std::function<void(const BadRow&)>& each) {
  Groups groups(each);
  for (const auto* options : {&data.training, &data.evaluation})
    if (*options) groups.read(**options, data.prepare);
  return std::move(groups).checked();
}

}  // namespace easydel::data
