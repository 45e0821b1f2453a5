#include "easydel/data/row_index.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/data/archive.h"
#include "easydel/data/byte_stream.h"
#include "easydel/weights/safetensors.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t index_version = 1;
constexpr int64_t bytes_between_places = int64_t{64} << 10;
constexpr const char* places_name = "places";  // [places, 3]: row, byte, line
constexpr const char* rows_name = "rows";

void add_place(RowIndex& index, const RowPlace& place) {
  if (!index.places.empty()) index.largest_group = std::max(index.largest_group, place.row - index.places.back().row);
  index.places.push_back(place);
}

// Which file it is, how its rows are found, and which program does so.
std::string name_of_index(const FileSource& source, const files::Stamp& stamp, SampleBy sample_by) {
  const std::string what = str(index_version, " ", source.name, " ", int(sample_by), " ", stamp.device, " ",
                               stamp.inode, " ", stamp.bytes, " ", stamp.changed);
  constexpr size_t digits = 32;
  return files::sha256(what).substr(0, digits) + ".safetensors";
}

// nullptr: there is none, or it is broken.
std::shared_ptr<const RowIndex> read_index(const fs::path& file, const files::Stamp& stamp) {
  if (!files::is_file(file)) return nullptr;
  try {
    const auto stored = weights::SafetensorsFile::open(file);
    const auto rows = stored->header().metadata.find(rows_name);
    if (rows == stored->header().metadata.end() || !stored->has(places_name)) return nullptr;
    const weights::TensorView view = stored->at(places_name);
    if (view.dtype != weights::DType::i64 || view.shape.size() != 2 || view.shape[1] != 3) return nullptr;
    auto out = std::make_shared<RowIndex>();
    out->rows = std::stoll(rows->second);
    out->stamp = stamp;
    out->places.reserve(size_t(view.shape[0]));
    for (int64_t i = 0; i < view.shape[0]; ++i) {
      std::array<int64_t, 3> numbers = {};
      std::memcpy(numbers.data(), view.bytes.data() + size_t(i) * sizeof numbers, sizeof numbers);
      add_place(*out, {numbers[0], numbers[1], numbers[2]});
    }
    if (!out->places.empty()) out->largest_group = std::max(out->largest_group, out->rows - out->places.back().row);
    return out;
  } catch (const std::exception& error) {
    log::info(file.string(), " cannot be read and is made again: ", error.what());
    return nullptr;
  }
}

void write_index(const fs::path& file, const RowIndex& index) {
  std::vector<int64_t> numbers;
  for (const RowPlace& place : index.places) numbers.insert(numbers.end(), {place.row, place.byte, place.line});
  const weights::OutTensor places{
      places_name, weights::DType::i64, {int64_t(index.places.size()), 3}, [&numbers](const auto& sink) {
        sink(numbers.data(), numbers.size() * sizeof(int64_t));
      }};
  try {
    files::make_directories(file.parent_path());
    weights::write_safetensors(file, {&places, 1}, {{rows_name, std::to_string(index.rows)}});
  } catch (const UserError& error) {  // the next run makes it again
    log::info(error.headline());
  }
}

}  // namespace

const RowPlace& RowIndex::before(int64_t row) const {
  check(row >= 0 && row < rows, "row ", row, " of ", rows);
  return *std::prev(std::ranges::upper_bound(places, row, {}, &RowPlace::row));
}

bool can_be_indexed(const FileSource& source, const fs::path& file) {
  if (is_packed(file)) return false;
  if (source.name != "webdataset") return true;
  ArchiveReader archive(file, ArchiveReader::Form::tar);
  archive.next();
  return !archive.is_packed();
}

RowIndex make_row_index(const FileSource& source, const fs::path& file, SampleBy sample_by) {
  if (!can_be_indexed(source, file))
    refuse(file.string(), "is packed, so its rows can only be read one after the other", "unpack it");
  RowIndex out;
  out.stamp = files::stamp_of(file);
  if (source.places) {
    std::vector<RowPlace> places = source.places(file);
    out.rows = places.back().row;
    places.pop_back();
    for (const RowPlace& place : places)
      if (out.places.empty() || place.row > out.places.back().row) add_place(out, place);
  } else {
    int64_t left = INT64_MAX, next = 0;  // the byte from which on there is another place
    ReadOptions options{sample_by};
    options.rows_to_skip = &left;
    options.on_skipped = [&](int64_t byte, int64_t line) {
      if (byte >= next) {
        add_place(out, {out.rows, byte, line});
        next = byte + bytes_between_places;
      }
      ++out.rows;
    };
    source.read(file, options, [&](const Row& row) -> bool { throw Bug(row.where + " was not passed over"); });
  }
  if (!out.places.empty()) out.largest_group = std::max(out.largest_group, out.rows - out.places.back().row);
  if (files::stamp_of(file) != out.stamp)
    refuse(file.string(), "changed while it was read", "run again when nothing writes to the file");
  return out;
}

std::shared_ptr<const RowIndex> RowIndices::of(const FileSource& source, const fs::path& file, SampleBy sample_by) {
  const files::Stamp stamp = files::stamp_of(file);
  const std::string name = name_of_index(source, stamp, sample_by);
  const auto found = std::ranges::find(known_, name, &decltype(known_)::value_type::first);
  if (found != known_.end()) return found->second;
  std::shared_ptr<const RowIndex> out = folder_.empty() ? nullptr : read_index(folder_ / name, stamp);
  if (!out) {
    out = std::make_shared<const RowIndex>(make_row_index(source, file, sample_by));
    if (!folder_.empty()) write_index(folder_ / name, *out);
  }
  known_.emplace_back(name, out);
  return out;
}

}  // namespace easydel::data
