// Which samples each update has: equal on 1, 2 and 4 ranks, for every number of workers, in memory, mapped and read
// while the run goes on, stopped and resumed five times, also on another number of ranks. CI runs a slice;
// EASYDEL_WHOLE_MATRIX=1 runs all of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/train/packed_source.h"
#include "easydel/train/ranks.h"
#include "support/ranks.h"

namespace easydel::train {
namespace {

enum class Body { memory, mapped, stream };

struct Cell {
  Body body = Body::memory;
  bool packs = false;
  int workers = 1;
  std::vector<int> ranks{1};  // of each part of the run, in turn
  int stops = 0;
  std::string text() const {
    std::string out = str(body == Body::memory   ? "memory"
                          : body == Body::mapped ? "mapped"
                                                 : "stream",
                          packs ? " packed" : "", " workers ", workers, " stops ", stops, " ranks");
    for (const int count : ranks) out += str(" ", count);
    return out;
  }
};

constexpr int64_t steps = 29;

class SampleMatrix : public testing::Test {
 protected:
  SampleMatrix() {
    for (const auto& [name, count] : {std::pair{"a", 90}, {"b", 47}}) {
      std::string text;
      for (int i = 0; i < count; ++i) text += str("{\"text\": \"", *name == 'a' ? i : 1000 + i, "\"}\n");
      test::write_file(folder_ / (std::string(name) + ".jsonl"), text);
    }
  }
  data::DatasetOptions options(const Cell& cell) const {
    data::DatasetOptions out;
    for (const char* name : {"a.jsonl", "b.jsonl"}) out.informs.emplace_back().data_files = {(folder_ / name).string()};
    out.shuffled = out.shuffle_documents = true;
    out.seed = 11;
    out.mixture = {true, 16, data::StopStrategy::restart, {}, {}};
    out.weights = {0.6, 0.4};
    out.prepare_threads = cell.workers;
    if (cell.packs) out.packing = data::Packing::bfd, out.row_length = 12, out.pack_window = 31;
    if (cell.body == Body::mapped) {
      out.store.emplace();
      out.store->cache = folder_ / "cache";
      out.store->min_bytes = 0;
      out.store->settings = Value::map();
    }
    if (cell.body == Body::stream)
      out.stream = {.cache = {}, .min_bytes = 0, .window_rows = 1, .workers = cell.workers, .settings = Value::map()};
    return out;
  }
  std::unique_ptr<BatchSource> source(const Cell& cell) const {
    auto set = std::make_shared<data::Dataset>(data::Dataset::build(options(cell), [](const data::TypedRow& row) {
      data::Prepared one;
      const int32_t id = std::stoi(row.text.scalar);
      one.example.emplace().add_sequence(std::vector<int32_t>(size_t(2 + id % 5), id));
      return one;
    }));
    if (set->packed_stream()) return std::make_unique<PackedSource>(set, 8, 2);
    return std::make_unique<DatasetSource>(set, 8, 2, 0, 2);
  }
  // The ids of every example of every update, in their order; each part of the run is a start of its own.
  std::string samples(const Cell& cell) const {
    for (int part = 0; part <= cell.stops; ++part) {
      const int64_t begin = steps * part / (cell.stops + 1), end = steps * (part + 1) / (cell.stops + 1);
      const int count = cell.ranks[size_t(part) % cell.ranks.size()];
      test::run_ranks(count, [&](const test::Meeting& meeting) {
        collective::TeamOptions meet;
        meet.file_store = meeting.file;
        meet.connect_seconds = meet.timeout_seconds = 30;
        const Ranks ranks(count == 1 ? collective::Team::alone()
                                     : collective::Team::join(
                                           meeting.world, mesh::Mesh(mesh::default_axes(), {count, 1, 1, 1, 1}), meet));
        const std::unique_ptr<BatchSource> from = source(cell);
        if (part > 0) from->go_to(begin, parse_file(folder_ / "cursor.json"));
        std::string out = part > 0 ? test::read_file(folder_ / "samples") : "";
        for (int64_t step = begin; step < end; ++step)
          for (const RankExamples& own : from->part(step, ranks)) {
            std::string text;
            for (const data::Example* example : own.examples) {
              for (const int32_t token : example->tokens) text += str(token, " ");
              text += "\n";
            }
            for (const std::string& one : ranks.of_parts(text)) out += one;
            out += str("- of update ", step, "\n");
          }
        if (!ranks.first()) return;
        test::write_file(folder_ / "samples", out);
        test::write_file(folder_ / "cursor.json", to_json(from->cursor(end)));
      });
    }
    return test::read_file(folder_ / "samples");
  }
  const test::TemporaryFolder folder_;
};

TEST_F(SampleMatrix, EveryCellHasTheSamplesOfARunInMemory) {
  const bool whole = std::getenv("EASYDEL_WHOLE_MATRIX") != nullptr;
  for (const bool packs : {false, true}) {
    const std::string want = samples({.packs = packs});
    ASSERT_GT(want.size(), 2000u);
    std::vector<Cell> cells;
    for (const Body body : {Body::memory, Body::mapped, Body::stream})
      for (const int workers : {1, 2, 5})
        for (const std::vector<int>& ranks : std::vector<std::vector<int>>{{1}, {2}, {4}, {2, 1, 4, 1, 2, 4}})
          for (const int stops : {0, 5})
            if (whole || (ranks.size() > 1 && stops == 5 && workers == 2))
              cells.push_back({body, packs, workers, ranks, stops});
    for (const Cell& cell : cells) EXPECT_EQ(files::sha256(samples(cell)), files::sha256(want)) << cell.text();
    std::fprintf(stderr, "%zu cells have the samples %s\n", cells.size(), files::sha256(want).substr(0, 16).c_str());
  }
}

}  // namespace
}  // namespace easydel::train
