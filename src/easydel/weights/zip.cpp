#include "easydel/weights/zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {
namespace {

constexpr const char* fetch_archive_again = "the file is damaged; fetch or save it again";
constexpr uint32_t local_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50, end64_mark = 0x06064b50,
                   locator_mark = 0x07064b50;
constexpr size_t end_bytes = 22, end64_bytes = 56, locator_bytes = 20, entry_bytes = 46, local_bytes = 30;

using Bytes = std::span<const std::byte>;

template <class T>
T number_at(Bytes bytes, uint64_t at, const std::string& file) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at)
    refuse(file, "is truncated in its directory", fetch_archive_again);
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

Bytes part(Bytes bytes, uint64_t at, uint64_t size, const std::string& file) {
  if (at > bytes.size() || size > bytes.size() - at)
    refuse(file, "has a member that reaches beyond its end", fetch_archive_again);
  return bytes.subspan(at, size);
}

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Directory {
  uint64_t count, at;
};

Directory directory_of(Bytes bytes, const std::string& file) {
  // The end record, followed by a comment of at most 65535 bytes.
  std::optional<uint64_t> end;
  for (uint64_t back = end_bytes; back <= bytes.size() && back <= end_bytes + 65535 && !end; ++back) {
    const uint64_t at = bytes.size() - back;
    if (number_at<uint32_t>(bytes, at, file) == end_mark &&
        number_at<uint16_t>(bytes, at + 20, file) == back - end_bytes)
      end = at;
  }
  if (!end) refuse(file, "has no directory at its end", fetch_archive_again);
  Directory out{number_at<uint16_t>(bytes, *end + 10, file), number_at<uint32_t>(bytes, *end + 16, file)};
  if (*end >= locator_bytes && number_at<uint32_t>(bytes, *end - locator_bytes, file) == locator_mark) {
    const auto at = number_at<uint64_t>(bytes, *end - locator_bytes + 8, file);
    if (bytes.size() < end64_bytes || at > bytes.size() - end64_bytes ||
        number_at<uint32_t>(bytes, at, file) != end64_mark)
      refuse(file, "has a damaged record at its end", fetch_archive_again);
    out = {number_at<uint64_t>(bytes, at + 32, file), number_at<uint64_t>(bytes, at + 48, file)};
  }
  return out;
}

// Sizes and offsets that do not fit into 32 bits are in an extra field, in this order.
void read_extra(Bytes extra, uint64_t& unpacked, uint64_t& packed, uint64_t& offset, const std::string& file) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const auto kind = number_at<uint16_t>(extra, at, file), size = number_at<uint16_t>(extra, at + 2, file);
    const Bytes field = part(extra, at + 4, size, file);
    at += 4u + size;
    if (kind != 1) continue;
    uint64_t next = 0;
    for (uint64_t* const number : {&unpacked, &packed, &offset})
      if (*number == UINT32_MAX) *number = number_at<uint64_t>(field, std::exchange(next, next + 8), file);
  }
}

}  // namespace

bool looks_like_zip(Bytes bytes) {
  uint32_t mark = 0;
  if (bytes.size() >= sizeof mark) std::memcpy(&mark, bytes.data(), sizeof mark);
  return mark == local_mark;
}

std::map<std::string, Bytes, std::less<>> zip_members(Bytes bytes, const std::string& file) {
  std::map<std::string, Bytes, std::less<>> out;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  const Directory directory = directory_of(bytes, file);
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const Bytes entry = part(bytes, at, entry_bytes, file);
    if (number_at<uint32_t>(entry, 0, file) != entry_mark)
      refuse(file, str("has a damaged entry ", i, " in its directory"), fetch_archive_again);
    const auto flags = number_at<uint16_t>(entry, 8, file), method = number_at<uint16_t>(entry, 10, file);
    uint64_t packed = number_at<uint32_t>(entry, 20, file), unpacked = number_at<uint32_t>(entry, 24, file);
    uint64_t offset = number_at<uint32_t>(entry, 42, file);
    const auto name_size = number_at<uint16_t>(entry, 28, file), extra_size = number_at<uint16_t>(entry, 30, file);
    const auto comment_size = number_at<uint16_t>(entry, 32, file);
    const std::string name(text_of(part(bytes, at + entry_bytes, name_size, file)));
    read_extra(part(bytes, at + entry_bytes + name_size, extra_size, file), unpacked, packed, offset, file);
    at += entry_bytes + name_size + extra_size + comment_size;
    if (flags & 1) refuse(file, "the member " + in_quotes(name) + " is encrypted", fetch_archive_again);
    if (method != 0 || packed != unpacked)
      refuse(file, "the member " + in_quotes(name) + " is compressed; torch.save does not do that",
             "save it again with torch.save");
    const Bytes local = part(bytes, offset, local_bytes, file);
    if (number_at<uint32_t>(local, 0, file) != local_mark)
      refuse(file, "the member " + in_quotes(name) + " has a damaged head", fetch_archive_again);
    const uint64_t begin =
        offset + local_bytes + number_at<uint16_t>(local, 26, file) + number_at<uint16_t>(local, 28, file);
    const Bytes data = part(bytes, begin, packed, file);
    places.emplace_back(offset, begin + packed);
    if (!out.emplace(name, data).second)
      refuse(file, "the member " + in_quotes(name) + " is there twice", fetch_archive_again);
  }
  // Members that share bytes would make a small file expand without limit.
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i].first < places[i - 1].second) refuse(file, "has members that overlap", fetch_archive_again);
  return out;
}

}  // namespace easydel::weights
