#include "easydel/train/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"

namespace easydel::train {
namespace {

// CRC-32C (Castagnoli), masked as TFRecord's frames have it.
uint32_t masked_crc(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
      out[i] = value;
    }
    return out;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[(crc ^ uint8_t(c)) & 0xFF] ^ crc >> 8;
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

template <class T>
std::string little_endian(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof value; ++i) out += char(uint8_t(value >> 8 * i));
  return out;
}

std::string frame(const std::string& event) {
  const std::string length = little_endian(uint64_t(event.size()));
  return length + little_endian(masked_crc(length)) + event + little_endian(masked_crc(event));
}

// A message of protocol buffers.
class Message {
 public:
  Message& integer(int field, uint64_t value) { return tag(field, 0).varint(value); }
  Message& number(int field, double value) {
    tag(field, 1).bytes += little_endian(std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& number(int field, float value) {
    tag(field, 5).bytes += little_endian(std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    tag(field, 2).varint(value.size()).bytes += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes); }

  std::string bytes;

 private:
  Message& tag(int field, int type) { return varint(uint64_t(field) << 3 | uint64_t(type)); }
  Message& varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes += char(uint8_t(value | 128));
    bytes += char(uint8_t(value));
    return *this;
  }
};

double wall_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Message event_at(int64_t step) {
  Message out;
  out.number(1, wall_time()).integer(2, uint64_t(step));
  return out;
}

// The step of an event, which is its second field if it is there at all (0 is left out by other writers); nothing: the
// bytes are no event of ours.
std::optional<int64_t> step_of(std::string_view event) {
  if (event.size() < 9 || event[0] != 0x09) return std::nullopt;
  if (event.size() == 9 || event[9] != 0x10) return 0;
  uint64_t step = 0;
  for (size_t i = 10, shift = 0; i < event.size() && shift < 64; ++i, shift += 7) {
    step |= uint64_t(uint8_t(event[i]) & 127) << shift;
    if (!(uint8_t(event[i]) & 128)) return int64_t(step);
  }
  return std::nullopt;
}

uint64_t read_length(std::string_view bytes) {
  uint64_t out = 0;
  for (size_t i = 0; i < 8; ++i) out |= uint64_t(uint8_t(bytes[i])) << 8 * i;
  return out;
}

// The frames of the events up to a step; a frame that a crash cut off ends them.
std::string kept_frames(const std::string& file, int64_t last_step) {
  std::string out;
  for (size_t at = 0; file.size() - at >= 16;) {
    const std::string_view rest = std::string_view(file).substr(at);
    const uint64_t length = read_length(rest);
    if (length > rest.size() - 16) break;
    const std::string_view event = rest.substr(12, size_t(length));
    const auto step = step_of(event);
    if (!step) break;
    if (*step <= last_step) out += rest.substr(0, size_t(length) + 16);
    at += size_t(length) + 16;
  }
  return out;
}

}  // namespace

struct EventFile::Impl {
  files::ResumingWriter file;
  bool failed = false;

  void write(const Message& event) {
    try {
      file.write(frame(event.bytes));
      failed = false;
    } catch (const UserError& error) {
      if (!std::exchange(failed, true)) log::warning(error.headline(), "; the run goes on without this event");
    }
  }
};

EventFile::EventFile(const std::filesystem::path& folder, int64_t from_step) {
  const std::filesystem::path path = folder / "events.out.tfevents.0.easydel";
  std::string kept;
  if (from_step > 0 && files::exists(path)) kept = kept_frames(files::read(path), from_step);
  if (kept.empty()) {
    Message version;
    version.number(1, wall_time()).text(3, "brain.Event:2");
    kept = frame(version.bytes);
  }
  files::write(path, kept);
  impl_.reset(new Impl{files::ResumingWriter(path)});
}

EventFile::~EventFile() = default;

void EventFile::add(const Value& record) {
  const Value* const step = record.find("step");
  if (!step || !step->as_int()) return;
  Message summary;
  for (const auto& [name, value] : record.entries) {
    const std::optional<double> number = value.as_double();
    if (name == "step" || !number) continue;
    Message scalar;
    scalar.text(1, name).number(2, float(*number));
    summary.message(1, scalar);
  }
  impl_->write(event_at(*step->as_int()).message(5, summary));
}

void EventFile::add_text(int64_t step, std::string_view tag, std::string_view text) {
  constexpr uint64_t dt_string = 7;
  Message plugin, metadata, shape, dimension, tensor, value, summary;
  plugin.text(1, "text");
  metadata.message(1, plugin);
  dimension.integer(1, 1);
  shape.message(2, dimension);
  tensor.integer(1, dt_string).message(2, shape).text(8, text);
  value.text(1, tag).message(8, tensor).message(9, metadata);
  summary.message(1, value);
  impl_->write(event_at(step).message(5, summary));
}

// HistogramProto's limits and counts are packed doubles.
void EventFile::add_histogram(int64_t step, std::string_view tag, const Histogram& histogram) {
  std::string limits, counts;
  for (const double limit : histogram.limits) limits += little_endian(std::bit_cast<uint64_t>(limit));
  for (const int64_t count : histogram.counts) counts += little_endian(std::bit_cast<uint64_t>(double(count)));
  Message proto, value, summary;
  proto.number(1, histogram.min).number(2, histogram.max).number(3, double(histogram.values));
  proto.number(4, histogram.sum).number(5, histogram.sum_of_squares).text(6, limits).text(7, counts);
  value.text(1, tag).message(5, proto);
  summary.message(1, value);
  impl_->write(event_at(step).message(5, summary));
}

}  // namespace easydel::train
