// Reads the keys in one pass and checks every length against the rest of the file.
#include "easydel/weights/gguf_metadata.h"

#include <charconv>

#include "easydel/base/error.h"

namespace easydel::weights {
namespace {

constexpr const char* fetch_metadata_again = "fetch the file again";

class MetadataReader {
 public:
  MetadataReader(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {}

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) refuse(name_, "is truncated in its metadata", fetch_metadata_again);
    std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  template <class T>
  T number() {
    T out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  std::string_view string() { return take(number<uint64_t>()); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  const std::string& name_;
};

size_t size_of(GgufMetadata::Type type) {
  using Type = GgufMetadata::Type;
  switch (type) {
    case Type::u8:
    case Type::i8:
    case Type::boolean:
      return 1;
    case Type::u16:
    case Type::i16:
      return 2;
    case Type::u32:
    case Type::i32:
    case Type::f32:
      return 4;
    case Type::u64:
    case Type::i64:
    case Type::f64:
      return 8;
    case Type::string:
    case Type::array:
      break;
  }
  return 0;
}

}  // namespace

GgufMetadata GgufMetadata::open(const std::filesystem::path& path) {
  auto mapped = files::Mapped::open(path);
  GgufMetadata out(mapped->bytes(), path.string());
  out.mapped_ = std::move(mapped);
  return out;
}

GgufMetadata::GgufMetadata(std::span<const std::byte> bytes, std::string name) : name_(std::move(name)) {
  MetadataReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name_);
  if (bytes.size() < 4 || reader.take(4) != "GGUF") refuse(name_, "is not a GGUF file", fetch_metadata_again);
  auto version = reader.number<uint32_t>();
  if (version != 2 && version != 3)
    refuse(name_, str("is a GGUF file of version ", version), "versions 2 and 3 are read");
  tensors_ = reader.number<uint64_t>();
  auto count = reader.number<uint64_t>();
  auto type_of = [&](std::string_view key) {
    auto type = reader.number<uint32_t>();
    if (type > uint32_t(Type::f64)) refuse(name_, str("'", key, "' has the unknown type ", type), fetch_metadata_again);
    return static_cast<Type>(type);
  };
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    std::string_view key = reader.string();
    const std::string_view from = reader.rest();
    entry.type = type_of(key);
    if (entry.type == Type::string) {
      entry.value = reader.string();
    } else if (entry.type != Type::array) {
      entry.value = reader.take(size_of(entry.type));
    } else {
      entry.element = type_of(key);
      entry.count = reader.number<uint64_t>();
      if (entry.element == Type::array) refuse(name_, str("'", key, "' is a list of lists"), fetch_metadata_again);
      if (entry.element == Type::string) {
        std::string_view texts = reader.rest();
        for (uint64_t j = 0; j < entry.count; ++j) reader.string();
        entry.value = texts.substr(0, texts.size() - reader.rest().size());
      } else {
        if (entry.count > reader.rest().size()) refuse(name_, "is truncated in its metadata", fetch_metadata_again);
        entry.value = reader.take(entry.count * size_of(entry.element));
      }
    }
    entry.raw = from.substr(0, from.size() - reader.rest().size());
    keys_.push_back(key);
    entries_.push_back(entry);
  }
  end_ = bytes.size() - reader.rest().size();
}

const GgufMetadata::Entry* GgufMetadata::find(std::string_view key) const {
  for (size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] == key) return &entries_[i];
  return nullptr;
}

double GgufMetadata::number_at(const Entry& entry, uint64_t index) {
  Type type = entry.type == Type::array ? entry.element : entry.type;
  const char* at = entry.value.data() + index * size_of(type);
  auto as = [&]<class T>(T number) {
    std::memcpy(&number, at, sizeof number);
    return double(number);
  };
  switch (type) {
    case Type::u8:
    case Type::boolean:
      return as(uint8_t{});
    case Type::i8:
      return as(int8_t{});
    case Type::u16:
      return as(uint16_t{});
    case Type::i16:
      return as(int16_t{});
    case Type::u32:
      return as(uint32_t{});
    case Type::i32:
      return as(int32_t{});
    case Type::f32:
      return as(float{});
    case Type::u64:
      return as(uint64_t{});
    case Type::i64:
      return as(int64_t{});
    case Type::f64:
      return as(double{});
    case Type::string:
    case Type::array:
      break;
  }
  return 0;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry || entry->type != Type::string) return std::nullopt;
  return entry->value;
}

std::optional<int64_t> GgufMetadata::integer(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry || entry->type == Type::string || entry->type == Type::array || entry->type == Type::f32 ||
      entry->type == Type::f64 || entry->type == Type::boolean)
    return std::nullopt;
  double number = number_at(*entry, 0);
  if (number < -9e15 || number > 9e15) return std::nullopt;
  return int64_t(number);
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry || entry->type == Type::string || entry->type == Type::array || entry->type == Type::boolean)
    return std::nullopt;
  const double number = number_at(*entry, 0);
  if (entry->type != Type::f32) return number;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, float(number)).ptr;
  double shortest = number;
  std::from_chars(text, end, shortest);
  return shortest;
}

std::string_view GgufMetadata::raw(std::string_view key) const {
  const Entry* entry = find(key);
  return entry ? entry->raw : std::string_view();
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry || entry->type != Type::boolean) return std::nullopt;
  return number_at(*entry, 0) != 0;
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  std::vector<std::string_view> out;
  const Entry* entry = find(key);
  if (!entry || entry->type != Type::array || entry->element != Type::string) return out;
  MetadataReader reader(entry->value, name_);
  out.reserve(entry->count);
  for (uint64_t i = 0; i < entry->count; ++i) out.push_back(reader.string());
  return out;
}

std::vector<int64_t> GgufMetadata::integers(std::string_view key) const {
  std::vector<int64_t> out;
  for (double number : numbers(key)) {
    if (number < -9e15 || number > 9e15)
      refuse(name_, str("'", key, "' has the number ", number), fetch_metadata_again);
    out.push_back(int64_t(number));
  }
  return out;
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  std::vector<double> out;
  const Entry* entry = find(key);
  if (!entry || entry->type != Type::array || entry->element == Type::string) return out;
  out.reserve(entry->count);
  for (uint64_t i = 0; i < entry->count; ++i) out.push_back(number_at(*entry, i));
  return out;
}

std::string_view GgufMetadata::bytes(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry || entry->type != Type::array || size_of(entry->element) != 1) return {};
  return entry->value;
}

}  // namespace easydel::weights
