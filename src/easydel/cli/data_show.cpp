// `easydel data show`: rows of a run's data as the model sees them.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/data.h"
#include "easydel/cli/shown_example.h"
#include "easydel/cli/shown_images.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/packed_stream.h"
#include "easydel/data/shuffle.h"

namespace easydel::cli {
namespace {

struct Found {
  data::Example example;
  std::optional<data::Example> whole;             // before truncation; not given: nothing was cut
  std::vector<std::string> where;                 // of each sequence
  std::shared_ptr<const data::RowImages> images;  // null: none
};

std::optional<int64_t> number_in(const std::string& text) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

// Whether a row's place is the one that was asked for: "train.jsonl:17" also for "data/train.jsonl:17".
bool is_place(const std::string& where, const std::string& asked) {
  return where == asked || (where.ends_with(asked) && where[where.size() - asked.size() - 1] == '/');
}

// The inform that the command names, alone in its options.
data::DatasetOptions chosen_inform(const data::RunData& data, const DataCommand& command) {
  std::vector<data::DatasetOptions> all;
  std::vector<std::string> names;
  for (const auto* options : {&data.training, &data.evaluation}) {
    if (!*options) continue;
    const std::vector<std::string> own = data::names_of((*options)->informs);
    for (size_t i = 0; i < own.size(); ++i) {
      data::DatasetOptions& one = all.emplace_back(**options);
      one.informs = {(*options)->informs[i]};
      one.mixture = {}, one.weights = {};
      names.push_back(own[i]);
    }
  }
  const auto number = number_in(command.inform.empty() ? "0" : command.inform);
  const auto named = std::ranges::find(names, command.inform);
  if (number && *number < int64_t(all.size())) return all[size_t(*number)];
  if (named == names.end())
    refuse("--inform", "there is no inform '" + command.inform + "'",
           str("give its number from 0, or its name: ", join(names, ", ")));
  return all[size_t(named - names.begin())];
}

// Reads the rows of one inform, in the order of its files.
class RowsOfInform {
 public:
  RowsOfInform(const data::RunData& data, const data::DatasetOptions& options) : data_(data), options_(options) {}

  int64_t count() const {
    const data::Prepare nothing = [](const data::TypedRow&) { return data::Prepared(); };
    data::InformReader reader(options_, 0, nothing);
    int64_t out = 0;
    reader.read([&](data::PreparedRow&) { return ++out, true; });
    return out;
  }

  std::vector<Found> from(const std::string& row, int64_t count) const {
    const std::optional<int64_t> first = number_in(row);
    // Only the rows that are shown are worth preparing.
    const data::Prepare nothing = [](const data::TypedRow&) { return data::Prepared(); };
    data::InformReader reader(options_, 0, nothing);
    std::vector<Found> out;
    int64_t number = 0;
    reader.read([&](data::PreparedRow& one) {
      if (one.ends_file) throw *one.error;
      const bool begins = first ? number == *first : is_place(place_of(one), row);
      if (begins || !out.empty()) out.push_back(found(one));
      ++number;
      return int64_t(out.size()) < count;
    });
    if (out.empty())
      refuse("--row", str(reader.name(), " has no row '", row, "'"),
             str("give a number from 0 to ", number - 1, ", or a place such as train.jsonl:17"));
    return out;
  }

 private:
  static std::string place_of(const data::PreparedRow& row) {
    return row.error ? Where(row.error->place, row.error->where).text() : row.row.where;
  }

  Found found(const data::PreparedRow& one) const {
    if (one.error) throw *one.error;
    const data::Prepared prepared = data_.prepare(one.row);
    if (prepared.is_image_alone) return {{}, std::nullopt, {one.row.where}, one.row.images};
    if (!prepared.example)
      refuse(one.row.where, "the row has no tokens to train on, so training leaves it out",
             "give it an answer that is not empty and not cut off by max_length");
    Found out{*prepared.example, std::nullopt, {}, one.row.images};
    if (prepared.cut_tokens > 0) out.whole = data_.prepare_whole(one.row).example;
    out.where.assign(out.example.lengths.size(), one.row.where);
    return out;
  }

  const data::RunData& data_;
  const data::DatasetOptions& options_;
};

std::vector<Found> with_places(const data::Dataset& dataset, std::vector<Found> found) {
  std::vector<int64_t> rows;
  for (const Found& one : found)
    for (const int64_t row : dataset.rows_of(one.example)) rows.push_back(row);
  const std::vector<data::RowOrigin> origins = dataset.origins(rows);
  auto origin = origins.begin();
  for (Found& one : found)
    for (size_t i = dataset.rows_of(one.example).size(); i > 0; --i) one.where.push_back((origin++)->where);
  return found;
}

// Rows of a packed stream, which are known after those before them.
std::vector<Found> packed_while_read(const data::Dataset& dataset, const DataCommand& command) {
  const std::optional<int64_t> first = number_in(command.row.empty() ? "0" : command.row);
  if (!first || command.random)
    refuse(command.random ? "--random" : "--row",
           "rows are packed while the run goes on, so only their numbers are known", "give a number from 0");
  data::PackedPlace place{.epoch = command.epoch.value_or(0)};
  std::vector<Found> out;
  for (int64_t i = 0; i < *first + command.count; ++i) {
    const int64_t epoch = place.epoch, rows = place.rows;
    Found one;
    one.example = std::move(dataset.packed_stream()->update(place, 1).front());
    if (place.epoch != epoch) {
      if (!out.empty()) break;
      refuse("--row", "there is no example '" + command.row + "'", str("give a number from 0 to ", rows - 1));
    }
    if (i < *first) continue;
    out.push_back(std::move(one));
  }
  return with_places(dataset, std::move(out));
}

// Examples as they are trained on: packed, in the order of an epoch or, without one, as they were made.
std::vector<Found> trained_examples(const data::RunData& data, data::DatasetOptions options,
                                    const DataCommand& command) {
  options.keep_origins = true;
  const data::Dataset dataset = data::Dataset::build(options, data.prepare);
  if (dataset.packed_stream()) return packed_while_read(dataset, command);
  const int64_t size = command.epoch ? dataset.size() : dataset.examples_count();
  std::optional<int64_t> first = number_in(command.row.empty() ? "0" : command.row);
  if (command.random) first = int64_t(data::Stream(*command.random, data::Use::documents, 0).below(uint64_t(size)));
  if (!first || *first >= size)
    refuse("--row", "there is no example '" + command.row + "'",
           str("with --packed or --epoch, give a number from 0 to ", size - 1));
  std::vector<Found> out;
  for (int64_t i = *first; i < std::min(*first + command.count, size); ++i) {
    const int64_t index = command.epoch ? dataset.index(*command.epoch, i) : i;
    std::optional<data::Example> example = dataset.find(index);
    if (example)
      out.emplace_back().example = std::move(*example);
    else if (i == *first)  // of a stream; the rows after it are shown without those that are left out
      refuse(dataset.origins(std::span(&index, 1)).front().where,
             "training leaves the row out: it has nothing to learn, or the mixture's keys drop it",
             "give another number; `easydel data order` prints the rows of each update");
  }
  return with_places(dataset, std::move(out));
}

std::vector<Found> find_rows(const data::RunData& data, const DataCommand& command) {
  if (command.packed || command.epoch) {
    if (!data.training) refuse("mixture.informs", "there is no data to train on", "give an inform with split: train");
    const data::DatasetOptions options = command.inform.empty() ? *data.training : chosen_inform(data, command);
    if (command.packed && options.packing == data::Packing::none)
      refuse("--packed", "the run does not pack its rows", "set mixture.pack_tokens: true, or leave --packed out");
    return trained_examples(data, options, command);
  }
  const data::DatasetOptions options = chosen_inform(data, command);
  const RowsOfInform rows(data, options);
  std::string row = command.row.empty() ? "0" : command.row;
  if (command.random) {
    const int64_t count = rows.count();
    if (count == 0) refuse("--random", "the inform has no rows", "choose another with --inform");
    row = std::to_string(data::Stream(*command.random, data::Use::documents, 0).below(uint64_t(count)));
  }
  return rows.from(row, command.count);
}

template <class T>
Value numbers(const std::vector<T>& list) {
  Value out = Value::list();
  for (const T one : list) out.items.push_back(Value::integer(int64_t(one)));
  return out;
}

std::string json_line(const Found& found, bool shifted) {
  Value out = Value::map(), where = Value::list();
  for (const std::string& one : found.where) where.items.push_back(Value::text(one));
  out.set("where", std::move(where));
  out.set("tokens", numbers(found.example.tokens));
  out.set("labels", numbers(found.example.unshifted_labels(shifted)));
  out.set("lengths", numbers(found.example.lengths));
  Value& weights = out.set("weights", Value::list());
  for (const float weight : found.example.unshifted_weights(shifted))
    weights.items.push_back(weight == 1 ? Value::integer(1) : Value::number(double(weight)));
  if (found.images) out.set("images", document_of(*found.images));
  return to_json(out) + "\n";
}

}  // namespace

int run_data_show(const DataCommand& command) {
  if (command.random && !command.row.empty())
    refuse("--random", "a row is named by --row already", "leave one of them out");
  if (int(command.tokens) + int(command.html) + int(command.json) > 1)
    refuse("easydel data show", "--tokens, --html and --json exclude each other", "give one of them");
  const data::RunData data = open_run_data(command);
  std::optional<log::Quiet> quiet;
  if (command.json) quiet.emplace();
  const std::vector<Found> rows = find_rows(data, command);
  const char* const plain = std::getenv("NO_COLOR");
  const bool colors = isatty(STDOUT_FILENO) && !(plain && *plain);
  const Marks marks = command.html ? Marks::html : colors ? Marks::colors : Marks::brackets;
  std::string out;
  for (const Found& row : rows) {
    if (command.json) {
      out += json_line(row, data.labels_are_shifted);
      continue;
    }
    const auto sequences =
        shown_sequences(row.example, row.where, row.whole ? &*row.whole : nullptr, data.labels_are_shifted);
    if (row.images && row.images->is_alone)
      out += command.tokens ? "# " + row.where.front() + "\n" : shown_heading(row.where.front(), marks);
    out += command.tokens ? shown_lines(sequences, *data.tokenizer) : shown_text(sequences, *data.tokenizer, marks);
    if (row.images) out += shown_images(*row.images, command.tokens ? Marks::brackets : marks);
  }
  return print(command.html ? html_page(out) : out), 0;
}

}  // namespace easydel::cli
