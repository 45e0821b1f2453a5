#include "easydel/data/packed_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using test::refusal;

std::atomic<int> prepared;

// A token for each letter; "-" is a row without labels.
Prepared letters_of(const TypedRow& row) {
  ++prepared;
  Prepared out;
  if (row.text.scalar == "bad") refuse(row.where, "is bad");
  if (row.text.scalar == "-") return out;
  out.example.emplace().add_sequence(std::vector<int32_t>(row.text.scalar.begin(), row.text.scalar.end()));
  return out;
}

using Rows = std::vector<std::string>;  // "<tokens>|<length> <length> ..."

class PackedStreams : public testing::Test {
 protected:
  void write(const std::string& name, int rows) {
    std::string text;
    for (int i = 0; i < rows; ++i) text += str("{\"text\": \"", i, std::string(size_t(i * 7 % 23), 'x'), "\"}\n");
    test::write_file(folder_ / name, text);
  }
  DatasetOptions options(const std::vector<std::string>& names, Packing packing = Packing::bfd) const {
    DatasetOptions out;
    for (const std::string& name : names) {
      InformConfig& inform = out.informs.emplace_back();
      inform.type = "jsonl";
      inform.data_files = {(folder_ / name).string()};
    }
    out.packing = packing, out.row_length = 16;
    out.shuffled = out.shuffle_documents = true;
    out.seed = 7;
    return out;
  }
  static DatasetOptions streamed(DatasetOptions options, int64_t workers = 2) {
    options.stream = {.cache = {}, .min_bytes = 0, .window_rows = 1, .workers = workers, .settings = {}};
    options.pack_window = options.pack_window.value_or(default_pack_window);
    return options;
  }
  static Dataset build(const DatasetOptions& options) { return Dataset::build(options, letters_of); }
  static std::string text_of(const Example& row) {
    std::string out(row.tokens.begin(), row.tokens.end());
    for (const int32_t length : row.lengths) out += str(" ", length);
    return out + str(" of ", row.labelled());
  }
  static Rows texts_of(const std::vector<Example>& rows) {
    Rows out;
    for (const Example& row : rows) out.push_back(text_of(row));
    return out;
  }
  static Rows epochs_in_memory(const Dataset& set, int64_t epochs) {
    Rows out;
    for (int64_t epoch = 0; epoch < epochs; ++epoch)
      for (int64_t i = 0; i < set.size(); ++i) out.push_back(text_of(set.at(set.index(epoch, i))));
    return out;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(PackedStreams, HaveTheRowsOfMemoryInTheSameOrder) {
  write("a.jsonl", 90);
  write("b.jsonl", 41);
  for (const Packing packing :
       {Packing::greedy, Packing::bfd, Packing::bfd_split, Packing::first_fit, Packing::wrapped})
    for (const std::optional<int64_t> window : {std::optional<int64_t>(), std::optional<int64_t>(17)})
      for (const int kind : {0, 1, 2, 3}) {
        DatasetOptions plain = options({"a.jsonl", "b.jsonl"}, packing);
        plain.pack_window = window;
        plain.shuffled = kind != 0, plain.shuffle_documents = kind > 1;
        if (kind == 3) plain.mixture = {true, 8, StopStrategy::restart, {}, {}}, plain.weights = {0.75, 0.25};
        const Dataset memory = build(plain);
        const Dataset stream = build(streamed(plain, kind + 1));
        ASSERT_TRUE(stream.packed_stream());
        EXPECT_EQ(stream.windows(), window ? "pack 17" : "");
        EXPECT_EQ(stream.windows(), memory.windows());
        PackedPlace place;
        Rows rows;
        while (place.epoch < 2)
          for (const Example& row : stream.packed_stream()->update(place, 5)) rows.push_back(text_of(row));
        rows.resize(size_t(memory.size()) * 2);
        ASSERT_EQ(rows, epochs_in_memory(memory, 2)) << int(packing) << " " << kind;
        if (!window) {
          EXPECT_EQ(stream.report().packing.text(), memory.report().packing.text());
        }
      }
}

TEST_F(PackedStreams, GoOnFromAnyPlaceAfterOneWindow) {
  write("a.jsonl", 1000);
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.pack_window = 50;
  std::vector<PackedPlace> places{{}};
  std::vector<Rows> updates;
  const Dataset unbroken = build(asked);
  while (places.back().epoch < 2) {
    places.push_back(places.back());
    updates.push_back(texts_of(unbroken.packed_stream()->update(places.back(), 7)));
  }
  ASSERT_GT(updates.size(), 100u);
  for (const size_t step : {size_t{0}, size_t{1}, size_t{63}, updates.size() - 9}) {
    const Dataset resumed = build(asked);
    prepared = 0;
    PackedPlace place = places[step];
    EXPECT_EQ(texts_of(resumed.packed_stream()->update(place, 7)), updates[step]);
    EXPECT_LE(prepared, 3 * 50 + 1) << "at most two windows for an update, and the one after them";
    for (size_t i = step + 1; i < step + 9; ++i) {
      EXPECT_EQ(place, places[i]);
      ASSERT_EQ(texts_of(resumed.packed_stream()->update(place, 7)), updates[i]);
    }
    place = places[step];  // and back
    EXPECT_EQ(texts_of(resumed.packed_stream()->update(place, 7)), updates[step]);
  }
}

// Shares go from the first source to the second within 20 updates of 4 rows.
TEST_F(PackedStreams, FollowAScheduleOfWeightsByTheRowsBefore) {
  write("a.jsonl", 90);
  std::string text;
  for (int i = 0; i < 41; ++i) text += "{\"text\": \"BBBBBBB\"}\n";
  test::write_file(folder_ / "b.jsonl", text);
  for (const bool shuffled : {true, false}) {
    DatasetOptions plain = options({"a.jsonl", "b.jsonl"});
    plain.shuffled = plain.shuffle_documents = shuffled;
    plain.mixture = {true,
                     16,
                     StopStrategy::restart,
                     {},
                     {WeightInterpolation::linear, {{0, {1, 0}}, {20, {0, 1}}}, 4, 4 * 30, true}};
    const Dataset memory = build(plain), stream = build(streamed(plain));
    ASSERT_EQ(memory.size(), 4 * 30);
    EXPECT_EQ(stream.size(), 4 * 30);
    std::vector<PackedPlace> places{{}};
    std::vector<Rows> updates;
    Rows rows;
    for (int step = 0; step < 30; ++step) {
      places.push_back(places.back());
      updates.push_back(texts_of(stream.packed_stream()->update(places.back(), 4)));
      rows.insert(rows.end(), updates.back().begin(), updates.back().end());
    }
    ASSERT_EQ(rows, epochs_in_memory(memory, 1));
    const auto second = [&](int first, int last) {
      int64_t count = 0;
      for (int step = first; step < last; ++step)
        for (const std::string& row : updates[size_t(step)]) count += std::ranges::count(row, 'B');
      return count;
    };
    EXPECT_EQ(second(0, 2), 0) << "a block has the shares of the step at which it begins";
    EXPECT_GT(second(12, 17), 0);
    EXPECT_EQ(second(25, 30), 5 * 4 * 14) << "rows of two such documents";
    for (const size_t step : {size_t{5}, size_t{17}, size_t{29}}) {
      const Dataset resumed = build(streamed(plain, 1));
      PackedPlace place = places[step];
      EXPECT_EQ(texts_of(resumed.packed_stream()->update(place, 4)), updates[step]);
      EXPECT_EQ(place, places[step + 1]);
    }
    DatasetOptions longer = plain;
    longer.mixture.schedule.examples_in_run *= 2;
    EXPECT_EQ(build(longer).fingerprint(), memory.fingerprint());
    EXPECT_EQ(build(streamed(longer)).fingerprint(), stream.fingerprint());
    rows = epochs_in_memory(build(longer), 1);
    rows.resize(120);
    EXPECT_EQ(rows, epochs_in_memory(memory, 1)) << "a longer run begins as a shorter one";
  }
}

TEST_F(PackedStreams, AnUpdateEndsWithItsEpochAndAnEpochAfterSoManyUpdates) {
  write("a.jsonl", 60);
  const DatasetOptions asked = streamed(options({"a.jsonl"}));
  const Dataset set = build(asked);
  const int64_t rows = build(options({"a.jsonl"})).size();
  PackedPlace place;
  EXPECT_EQ(int64_t(set.packed_stream()->update(place, rows - 3).size()), rows - 3);
  EXPECT_EQ(set.packed_stream()->update(place, rows - 3).size(), 3u);
  EXPECT_EQ(place.epoch, 0);
  EXPECT_EQ(int64_t(set.packed_stream()->update(place, rows - 3).size()), rows - 3);
  EXPECT_EQ(place.epoch, 1);
  place = {};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(set.packed_stream()->update(place, 4, 3).size(), 4u);
  EXPECT_EQ(place.rows, 12);
  EXPECT_EQ(set.packed_stream()->update(place, 4, 3).size(), 4u);
  EXPECT_EQ(place, (PackedPlace{1, 4, 0, 4}));
}

TEST_F(PackedStreams, RowsWithoutAnExampleAndBadOnesAreLeftOutOrEndTheRun) {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += i == 150 ? "{\"text\": \"bad\"}\n" : i % 3 == 1 ? "{\"text\": \"-\"}\n" : "{\"text\": \"abc\"}\n";
  test::write_file(folder_ / "a.jsonl", text);
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.shuffled = asked.shuffle_documents = false;
  asked.pack_window = 100;
  const Dataset strict = build(asked);
  PackedPlace place;
  EXPECT_EQ(strict.packed_stream()->update(place, 2).size(), 2u);
  EXPECT_EQ(strict.report().packing.documents, 67);
  EXPECT_EQ(refusal([&] { (void)strict.packed_stream()->update(place, 100); }),
            (folder_ / "a.jsonl").string() + ":151: is bad");
  asked.bad_rows = {true, {}};
  const Dataset skipping = build(asked);
  place = {};
  (void)skipping.packed_stream()->update(place, 14);
  EXPECT_EQ(skipping.report().skipped, 0) << "of the windows that were used";
  (void)skipping.packed_stream()->update(place, 1000);
  EXPECT_EQ(skipping.report().skipped, 1);
  EXPECT_EQ(skipping.report().dropped, 100);
  EXPECT_EQ(skipping.report().packing.documents, 199);
}

TEST_F(PackedStreams, AnEpochWithoutRowsEndsTheRun) {
  std::string text = "{\"text\": \"abc\"}\n";
  for (int i = 0; i < 80; ++i) text += "{\"text\": \"-\"}\n";
  test::write_file(folder_ / "a.jsonl", text);
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.shuffled = asked.shuffle_documents = false;
  asked.informs[0].split = "train[1:]";
  EXPECT_TRUE(refusal([&] { build(asked); }).starts_with("mixture.informs: there is nothing to train on"));
  asked.informs[0].split = "train";
  asked.pack_window = 10;
  const Dataset set = build(asked);
  PackedPlace place;
  EXPECT_EQ(set.packed_stream()->update(place, 2).size(), 1u) << "and eight windows without rows";
  place = {.epoch = 0, .rows = 0, .window = 1, .row = 0};
  EXPECT_EQ(refusal([&] { (void)set.packed_stream()->update(place, 2); }),
            "mixture.informs: no row of an epoch has an example, so there is nothing to train on\n    `easydel data "
            "check` says what is wrong with each row");
}

TEST_F(PackedStreams, AreOtherDataIfTheyArePackedOtherwise) {
  write("a.jsonl", 90);
  const DatasetOptions asked = streamed(options({"a.jsonl"}));
  std::set<std::string> fingerprints{build(asked).fingerprint(), build(asked).fingerprint()};
  EXPECT_EQ(fingerprints.size(), 1u);
  for (int change = 0; change < 5; ++change) {
    DatasetOptions other = asked;
    if (change == 0) other.packing = Packing::greedy;
    if (change == 1) other.row_length = 20;
    if (change == 2) other.pack_window = 30;
    if (change == 3) other.shuffle_documents = false;
    if (change == 4) other.seed = 8;
    fingerprints.insert(build(other).fingerprint());
  }
  EXPECT_EQ(fingerprints.size(), 6u);
}

TEST_F(PackedStreams, KnowWhereTheDocumentsOfARowComeFrom) {
  write("a.jsonl", 90);
  DatasetOptions asked = options({"a.jsonl"}, Packing::greedy);
  asked.keep_origins = true;
  const Dataset memory = build(asked), stream = build(streamed(asked));
  PackedPlace place;
  const std::vector<Example> rows = stream.packed_stream()->update(place, 9);
  for (int64_t i = 0; i < 9; ++i) {
    const Example want = memory.at(memory.index(0, i));
    std::vector<std::string> a, b;
    for (const RowOrigin& origin : memory.origins(memory.rows_of(want))) a.push_back(origin.where);
    for (const RowOrigin& origin : stream.origins(stream.rows_of(rows[size_t(i)]))) b.push_back(origin.where);
    EXPECT_EQ(a, b);
    EXPECT_EQ(b.size(), rows[size_t(i)].lengths.size());
  }
}

}  // namespace
}  // namespace easydel::data
