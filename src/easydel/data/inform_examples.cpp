#include "easydel/data/inform_examples.h"

#include <array>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/data/inform_reader.h"

namespace easydel::data {
namespace {

constexpr int64_t rows_before_further = 1000;  // as TRL unpairs: see Prepared::further

constexpr std::array<std::pair<const char*, int64_t DatasetReport::*>, 8> report_numbers{
    {{"rows", &DatasetReport::rows},
     {"dropped", &DatasetReport::dropped},
     {"too_long", &DatasetReport::too_long},
     {"cut_rows", &DatasetReport::cut_rows},
     {"cut_tokens", &DatasetReport::cut_tokens},
     {"copies", &DatasetReport::copies},
     {"contaminated", &DatasetReport::contaminated},
     {"skipped", &DatasetReport::skipped}}};

int64_t number_in(const Value& document, const char* name) {
  const Value* const number = document.find(name);
  return number ? number->as_int().value_or(0) : 0;
}

// Makes the examples of an inform and notes what is worth telling about its rows.
class InformExamples {
 public:
  InformExamples(const DatasetOptions& options, size_t index, const Prepare& prepare, ExampleTarget& target,
                 ReadExamples& out)
      : options_(options),
        index_(index),
        reader_(options, index, prepare),
        target_(target),
        out_(out),
        report_(out.report),
        origins_(out.origins) {}

  // Returns how many there are.
  int64_t read() {
    reader_.skip(row_);
    row_ = 0;
    reader_.read([&](PreparedRow& row) {
      if (!row.skipped) take(row);
      ++row_;
      if (further_.empty() && target_.is_full()) target_.cut(place());
      return true;
    });
    add_further();
    if (options_.on_rows) options_.on_rows(report_.rows);
    return examples_;
  }

  // Goes on at a place of this inform.
  void go_to(const Value& place) {
    row_ = number_in(place, "row"), examples_ = number_in(place, "examples");
    taken_ = number_in(place, "taken"), without_prompt_ = number_in(place, "without_prompt");
    for (const Value& kind : place.find("kinds")->items) kinds_.insert(kind.scalar);
    for (const Value& text : place.find("unused_texts")->items) unused_texts_.insert(text.scalar);
  }

  void tell() const {
    if (taken_ > 0) log::info(reader_.name(), ": ", counted(taken_, "row"), " of ", join(kinds(), ", "));
    if (without_prompt_ == 0) return;
    const std::string what = str(reader_.name(), ": ", counted(without_prompt_, "row"),
                                 " without a prompt; what chosen and rejected begin with is taken as the prompt");
    if (unused_texts_.empty()) return log::info(what);
    const std::vector<std::string> unused(unused_texts_.begin(), unused_texts_.end());
    log::warning(what, "; not used: ", join(unused, ", "), " (content_field: ", unused[0],
                 " would make it the prompt)");
  }

 private:
  Value place() const {
    Value out = Value::map(), sizes = Value::list();
    for (const int64_t size : out_.sizes) sizes.items.push_back(Value::integer(size));
    out.set("sizes", std::move(sizes));
    for (const auto& [name, number] :
         {std::pair{"row", row_}, {"examples", examples_}, {"taken", taken_}, {"without_prompt", without_prompt_}})
      out.set(name, Value::integer(number));
    for (const auto& [name, words] : {std::pair{"kinds", &kinds_}, {"unused_texts", &unused_texts_}}) {
      Value& list = out.set(name, Value::list());
      for (const std::string& word : *words) list.items.push_back(Value::text(word));
    }
    out.set("report", document_of(report_));
    return out;
  }

  void take(PreparedRow& one) {
    if (one.error && one.ends_file) throw *one.error;
    if (one.error) return skip(*one.error);
    const TypedRow& row = one.row;
    if (repeats(row)) return;
    target_.take(row, index_);
    ++taken_;
    ++report_.rows;
    if (options_.on_rows && report_.rows % 1024 == 0) options_.on_rows(report_.rows);
    report_.cut_rows += one.prepared.cut_tokens > 0;
    report_.cut_tokens += one.prepared.cut_tokens;
    kinds_.insert(std::string(name_of(row.kind)) + (!row.instruction_text.empty() ? " (instructions)"
                                                    : row.conversational          ? " (conversational)"
                                                                                  : ""));
    report_.mistakes.add(one.prepared.all_mistakes(), row.where);
    report_.special.insert(one.prepared.special.begin(), one.prepared.special.end());
    without_prompt_ += row.prompt_is_shared;
    unused_texts_.insert(row.unused_texts.begin(), row.unused_texts.end());
    for (Example& example : one.prepared.further) further_.push_back({std::move(example), row.where, row_});
    if (one.prepared.example)
      add(std::move(*one.prepared.example), row.where, row_);
    else if (one.prepared.too_long)
      ++report_.too_long;
    else if (one.prepared.learns_nothing())
      ++report_.dropped;
    if (taken_ % rows_before_further == 0) add_further();
  }

  void add(Example example, const std::string& where, int64_t number) {
    if (options_.keep_origins) {
      const auto row = int64_t(origins_.size());
      example.set({row_column, Column::Per::sequence, std::vector<int64_t>(example.lengths.size(), row)});
      origins_.push_back({index_, where});
    }
    target_.add(example, number);
    ++examples_;
  }

  void add_further() {
    for (Further& one : further_) add(std::move(one.example), one.where, one.row);
    further_.clear();
  }

  // Whether the row is left out because it repeats another one, or evaluation data.
  bool repeats(const TypedRow& row) {
    if (options_.deduplicate && !out_.seen.insert(digest_of_words(row)).second) {
      ++report_.copies;
      return true;
    }
    if (!out_.repeated || !out_.repeated->shares(row)) return false;
    ++report_.contaminated;
    return options_.decontamination->drop;
  }

  void skip(const UserError& error) {
    if (!options_.bad_rows.skip) throw error;
    if (options_.bad_rows.most && report_.skipped == *options_.bad_rows.most)
      refuse(Where(error.place, error.where),
             str("is bad row ", report_.skipped + 1, ", and mixture.max_bad_rows is ", *options_.bad_rows.most, ": ",
                 error.problem),
             "`easydel data check` lists all bad rows; repair them, or raise mixture.max_bad_rows");
    ++report_.skipped;
    if (report_.skipped_rows.size() < named_skipped_rows) report_.skipped_rows.push_back(error.headline());
  }

  std::vector<std::string> kinds() const {
    if (kinds_.empty()) return {"nothing"};
    return {kinds_.begin(), kinds_.end()};
  }

  const DatasetOptions& options_;
  size_t index_;
  InformReader reader_;
  ExampleTarget& target_;
  ReadExamples& out_;
  DatasetReport& report_;
  std::vector<RowOrigin>& origins_;
  int64_t examples_ = 0;
  struct Further {
    Example example;
    std::string where;
    int64_t row;
  };
  std::vector<Further> further_;  // of the last rows
  std::set<std::string> kinds_;
  std::set<std::string> unused_texts_;
  int64_t taken_ = 0, without_prompt_ = 0;
  int64_t row_ = 0;  // of the inform, from 0: the next one
};

}  // namespace

std::shared_ptr<const WordRuns> evaluated_words(const DatasetOptions& options) {
  DatasetOptions evaluation = options;
  evaluation.informs = options.decontamination->against;
  evaluation.section = "mixture.evaluation";
  auto out = std::make_shared<WordRuns>(options.decontamination->words);
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  for (size_t i = 0; i < evaluation.informs.size(); ++i)
    InformReader(evaluation, i, nothing).read([&](PreparedRow& row) {
      if (row.error && row.ends_file) throw *row.error;
      if (!row.error) out->add(row.row);
      return true;
    });
  return out;
}

Value document_of(const DatasetReport& report) {
  Value out = Value::map();
  for (const auto& [name, member] : report_numbers) out.set(name, Value::integer(report.*member));
  Value& rows = out.set("skipped_rows", Value::list());
  for (const std::string& row : report.skipped_rows) rows.items.push_back(Value::text(row));
  out.set("mistakes", report.mistakes.document());
  Value& special = out.set("special", Value::list());
  for (const int32_t token : report.special) special.items.push_back(Value::integer(token));
  return out;
}

DatasetReport report_of(const Value& document) {
  DatasetReport out;
  for (const auto& [name, member] : report_numbers) out.*member = number_in(document, name);
  if (const Value* const rows = document.find("skipped_rows"))
    for (const Value& row : rows->items) out.skipped_rows.push_back(row.scalar);
  if (const Value* const mistakes = document.find("mistakes")) out.mistakes = MistakeCounts::of_document(*mistakes);
  if (const Value* const special = document.find("special"))
    for (const Value& token : special->items) out.special.insert(int32_t(token.as_int().value_or(0)));
  return out;
}

int64_t read_inform(const DatasetOptions& options, size_t index, const Prepare& prepare, ExampleTarget& target,
                    ReadExamples& out) {
  return InformExamples(options, index, prepare, target, out).read();
}

void read_examples(const DatasetOptions& options, const Prepare& prepare, ExampleTarget& target, ReadExamples& out,
                   const Value& place) {
  if (place.is_map()) {
    for (const Value& size : place.find("sizes")->items) out.sizes.push_back(size.as_int().value_or(0));
    out.report = report_of(*place.find("report"));
  }
  if (options.decontamination) out.repeated = evaluated_words(options);
  const size_t first = out.sizes.size();
  for (size_t i = first; i < options.informs.size(); ++i) {
    InformExamples inform(options, i, prepare, target, out);
    if (i == first && place.is_map()) inform.go_to(place);
    out.sizes.push_back(inform.read());
    inform.tell();
  }
}

}  // namespace easydel::data
