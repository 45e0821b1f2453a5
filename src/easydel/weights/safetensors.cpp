// Reads safetensors: the header and its rules, and one mapped file.
#include "easydel/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/simdjson.h"

namespace easydel::weights {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t header_cap = 100'000'000;
constexpr const char* damaged = "the file is damaged or was not written as safetensors; fetch or save it again";

std::string shown(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

uint64_t whole_number(simdjson::dom::element value, std::string_view file, const std::string& what) {
  uint64_t number = 0;
  if (value.get_uint64().get(number) || number > INT64_MAX)
    refuse(std::string(file), what + " is not a whole number from 0 up", damaged);
  return number;
}

Header::Entry read_entry(std::string_view name, simdjson::dom::element value, std::string_view file) {
  std::string tensor = "tensor " + in_quotes(name);
  simdjson::dom::object object;
  if (value.get_object().get(object)) refuse(std::string(file), tensor + " is described by no JSON object", damaged);
  std::optional<std::string_view> dtype_name;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::pair<uint64_t, uint64_t>> range;
  for (auto [key, item] : object) {
    if (key == "dtype") {
      std::string_view text;
      if (dtype_name || item.get_string().get(text)) refuse(std::string(file), tensor + " has a bad 'dtype'", damaged);
      dtype_name = text;
    } else if (key == "shape") {
      simdjson::dom::array sizes;
      if (shape || item.get_array().get(sizes)) refuse(std::string(file), tensor + " has a bad 'shape'", damaged);
      shape.emplace();
      for (auto size : sizes) shape->push_back(int64_t(whole_number(size, file, tensor + ": a size")));
    } else if (key == "data_offsets") {
      simdjson::dom::array ends;
      if (range || item.get_array().get(ends) || ends.size() != 2)
        refuse(std::string(file), tensor + " has bad 'data_offsets'", damaged);
      range = {whole_number(ends.at(0), file, tensor + ": an offset"),
               whole_number(ends.at(1), file, tensor + ": an offset")};
    }
  }
  if (!dtype_name || !shape || !range)
    refuse(std::string(file),
           str(tensor, " has no '",
               !dtype_name ? "dtype"
               : !shape    ? "shape"
                           : "data_offsets",
               "'"),
           damaged);
  auto dtype = dtype_of_safetensors(*dtype_name);
  if (!dtype)
    refuse(std::string(file), str(tensor, " has the dtype ", in_quotes(*dtype_name), ", which is not known"),
           "known: BOOL, U8, I8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, F8_E4M3, F8_E5M2");
  auto [begin, end] = *range;
  auto bytes = bytes_of_shape(*shape, size_of(*dtype));
  if (end < begin || !bytes || *bytes != end - begin)
    refuse(std::string(file),
           str(tensor, ": ", *dtype_name, " ", shown(*shape), " does not fill its bytes ", begin, " to ", end),
           damaged);
  return {*dtype, std::move(*shape), begin, end};
}

// Checks that every byte of the data belongs to exactly one tensor.
void check_cover(const Header& header, uint64_t data_bytes, std::string_view file) {
  std::vector<const std::pair<const std::string, Header::Entry>*> order;
  order.reserve(header.tensors.size());
  for (auto& item : header.tensors) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t at = 0;
  const std::string* before = nullptr;
  for (auto* item : order) {
    auto& [name, entry] = *item;
    if (entry.end > data_bytes)
      refuse(
          std::string(file),
          str("tensor ", in_quotes(name), " ends at byte ", entry.end, " of the data, but there are only ", data_bytes),
          "the file is truncated; fetch or save it again");
    if (entry.begin < at)
      refuse(std::string(file), str("tensors ", in_quotes(*before), " and ", in_quotes(name), " overlap"), damaged);
    if (entry.begin > at)
      refuse(std::string(file), str("bytes ", at, " to ", entry.begin, " of the data belong to no tensor"), damaged);
    at = entry.end;
    before = &name;
  }
  if (at != data_bytes)
    refuse(std::string(file), str("bytes ", at, " to ", data_bytes, " of the data belong to no tensor"), damaged);
}

}  // namespace

Header parse_header(std::span<const std::byte> bytes, std::string_view name) {
  std::string file(name);
  if (bytes.size() < 8)
    refuse(file, str("is ", bytes.size(), " bytes long; a safetensors file has at least 8"), damaged);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | uint8_t(bytes[i]);
  if (length > header_cap)
    refuse(file, str("says that its header has ", length, " bytes; at most ", header_cap, " are allowed"), damaged);
  if (length > bytes.size() - 8)
    refuse(file, str("says that its header has ", length, " bytes, but only ", bytes.size() - 8, " follow"),
           "the file is truncated; fetch or save it again");
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  if (!text.starts_with('{')) refuse(file, "its header does not begin with '{'", damaged);

  simdjson::dom::parser parser;
  simdjson::dom::object object;
  simdjson::padded_string padded(text);
  if (auto error = parser.parse(padded).get_object().get(object))
    refuse(file, str("its header is not valid JSON: ", simdjson::error_message(error)), damaged);

  Header header;
  header.data_begin = 8 + length;
  bool has_metadata = false;
  for (auto [key, value] : object) {
    if (key == "__metadata__") {
      simdjson::dom::object entries;
      if (has_metadata || value.get_object().get(entries)) refuse(file, "has a bad '__metadata__'", damaged);
      has_metadata = true;
      for (auto [word, item] : entries) {
        std::string_view says;
        if (item.get_string().get(says))
          refuse(file, str("'__metadata__': ", in_quotes(word), " is not a string"), damaged);
        if (!header.metadata.emplace(word, says).second)
          refuse(file, str("'__metadata__': ", in_quotes(word), " is listed twice"), damaged);
      }
      continue;
    }
    if (!header.tensors.emplace(key, read_entry(key, value, name)).second)
      refuse(file, str("tensor ", in_quotes(key), " is in the header twice"), damaged);
  }
  check_cover(header, bytes.size() - header.data_begin, name);
  return header;
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const fs::path& path) {
  auto file = std::make_shared<SafetensorsFile>();
  file->path_ = path;
  file->mapped_ = files::Mapped::open(path);
  file->header_ = parse_header(file->mapped_->bytes(), path.string());
  return file;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : header_.tensors) out.push_back(name);
  return out;
}

bool SafetensorsFile::has(std::string_view name) const { return header_.tensors.contains(std::string(name)); }

TensorView SafetensorsFile::at(std::string_view name) const {
  auto it = header_.tensors.find(std::string(name));
  if (it == header_.tensors.end())
    refuse(path_.string(), "has no tensor " + in_quotes(name),
           str("it has ", header_.tensors.size(), " other tensors"));
  auto& entry = it->second;
  return {entry.dtype, entry.shape, mapped_->bytes().subspan(header_.data_begin + entry.begin, entry.end - entry.begin),
          mapped_};
}

}  // namespace easydel::weights
