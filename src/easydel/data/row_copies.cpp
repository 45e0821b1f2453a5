#include "easydel/data/row_copies.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/weights/safetensors.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;
using weights::DType;

constexpr const char* copies_array = "copies";    // [rows / 64, rounded up] words of a RowSet
constexpr const char* digests_array = "digests";  // [rows]; 0: none
constexpr const char* rows_of_copies = "rows";

// Numbers of a file's only array; empty: it has no such array.
std::span<const int64_t> numbers_in(const weights::SafetensorsFile& file, const char* name) {
  if (!file.has(name)) return {};
  const weights::TensorView view = file.at(name);
  if (view.dtype != DType::i64 || view.shape.size() != 1) return {};
  return {reinterpret_cast<const int64_t*>(view.bytes.data()), size_t(view.shape[0])};
}

std::optional<RowSet> read_copies(const fs::path& file, int64_t rows) {
  if (!files::is_file(file)) return std::nullopt;
  try {
    const auto stored = weights::SafetensorsFile::open(file);
    const auto known = stored->header().metadata.find(rows_of_copies);
    const std::span<const int64_t> words = numbers_in(*stored, copies_array);
    if (known != stored->header().metadata.end() && known->second == std::to_string(rows) &&
        int64_t(words.size()) == (rows + 63) / 64)
      return RowSet(rows, {words.begin(), words.end()});
    log::info(file.string(), " is not what was written and is made again");
  } catch (const UserError& error) {
    log::info(error.headline(), "; it is made again");
  }
  return std::nullopt;
}

void write_copies(const fs::path& file, const RowSet& copies) {
  const std::vector<uint64_t>& words = copies.words();
  const weights::OutTensor out{copies_array, DType::i64, {int64_t(words.size())}, [&](const auto& sink) {
                                 sink(words.data(), words.size() * sizeof(uint64_t));
                               }};
  try {
    files::make_directories(file.parent_path());
    weights::write_safetensors(file, {&out, 1}, {{rows_of_copies, std::to_string(copies.size())}});
  } catch (const UserError& error) {  // the next run finds them again
    log::info(error.headline());
  }
}

// Digests on the disk, for as long as they are compared.
class DigestFile {
 public:
  DigestFile(const fs::path& file, int64_t rows, const RowDigests& digests) : path_(file) {
    const weights::OutTensor out{digests_array, DType::i64, {rows}, [&](const auto& sink) {
                                   constexpr size_t together = 1 << 16;
                                   std::vector<uint64_t> numbers;
                                   const auto flush = [&] {
                                     sink(numbers.data(), numbers.size() * sizeof(uint64_t));
                                     numbers.clear();
                                   };
                                   digests([&](std::optional<uint64_t> digest) {
                                     numbers.push_back(digest ? std::max<uint64_t>(*digest, 1) : 0);
                                     if (numbers.size() == together) flush();
                                   });
                                   flush();
                                 }};
    weights::write_safetensors(path_, {&out, 1}, {});
    stored_ = weights::SafetensorsFile::open(path_);
  }
  ~DigestFile() {
    try {
      files::remove_all(path_);
    } catch (const UserError& error) {
      log::info(error.headline());
    }
  }
  DigestFile(const DigestFile&) = delete;
  DigestFile& operator=(const DigestFile&) = delete;

  std::span<const int64_t> digests() const { return numbers_in(*stored_, digests_array); }

 private:
  fs::path path_;
  std::shared_ptr<const weights::SafetensorsFile> stored_;
};

// `digests`: 0 is none.
RowSet compared(std::span<const int64_t> digests, int64_t rows_together) {
  RowSet out{int64_t(digests.size())};
  const uint64_t parts = digests.size() / uint64_t(rows_together) + 1;
  std::vector<std::pair<uint64_t, int64_t>> part;  // digest and row
  for (uint64_t p = 0; p < parts; ++p) {
    part.clear();
    for (size_t row = 0; row < digests.size(); ++row)
      if (digests[row] != 0 && uint64_t(digests[row]) % parts == p) part.emplace_back(digests[row], row);
    std::ranges::sort(part);
    for (size_t i = 1; i < part.size(); ++i)
      if (part[i].first == part[i - 1].first) out.add(part[i].second);
  }
  return out;
}

}  // namespace

RowSet find_copies(int64_t rows, const RowDigests& digests, const CopySearch& search) {
  const fs::path file = search.folder / ("copies-" + search.key + ".safetensors");
  if (!search.folder.empty())
    if (std::optional<RowSet> known = read_copies(file, rows)) return std::move(*known);
  std::optional<RowSet> out;
  if (search.folder.empty() || rows <= search.rows_together) {
    std::vector<int64_t> numbers;
    numbers.reserve(size_t(rows));
    digests([&](std::optional<uint64_t> digest) {
      numbers.push_back(digest ? int64_t(std::max<uint64_t>(*digest, 1)) : 0);
    });
    check(int64_t(numbers.size()) == rows, numbers.size(), " digests of ", rows, " rows");
    out = compared(numbers, search.rows_together);
  } else {
    files::make_directories(search.folder);
    const DigestFile stored(search.folder / str("digests-", search.key, "-", ::getpid(), ".safetensors"), rows,
                            digests);
    out = compared(stored.digests(), search.rows_together);
  }
  if (!search.folder.empty()) write_copies(file, *out);
  return std::move(*out);
}

}  // namespace easydel::data
