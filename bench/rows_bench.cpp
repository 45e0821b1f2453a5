// rows_bench FILE [FIELD,FIELD]: MB/s of reading the bytes of a file, MB/s of indexing its rows, and rows/s of reading
// them, on one thread; the best of a few rounds in turns. bench/data.py compares them with those of `datasets`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <vector>

#include "easydel/base/files.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/row_index.h"

namespace {

template <class Action>
void best_of(double& seconds, const Action& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace

int main(int count, char** words) {
  using namespace easydel;
  if (count < 2) return 2;
  const std::filesystem::path file = words[1];
  const data::FileSource& source = *data::source_of_file(file);
  data::ReadOptions options;
  std::stringstream fields(count > 2 ? words[2] : "");
  for (std::string field; std::getline(fields, field, ',');) options.fields.push_back(field);
  constexpr int rounds = 5;
  double bytes = 1e9, index = 1e9, reading = 1e9;
  int64_t rows = 0;
  std::vector<char> piece(size_t{1} << 18);
  for (int round = 0; round < rounds; ++round) {
    best_of(bytes, [&] {
      const auto stream = data::open_bytes(file);
      while (stream->read(piece.data(), piece.size()) > 0) {
      }
    });
    best_of(index, [&] { rows = data::make_row_index(source, file, data::SampleBy::line).rows; });
    best_of(reading, [&] { source.read(file, options, [](const data::Row&) { return true; }); });
  }
  const double megabytes = double(files::size(file)) / 1e6;
  std::printf("bytes\t%.0f\nindex\t%.0f\nrows\t%.0f\n", megabytes / bytes, megabytes / index, double(rows) / reading);
}
