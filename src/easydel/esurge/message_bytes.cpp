#include "easydel/esurge/message_bytes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::esurge {
namespace {

static_assert(std::endian::native == std::endian::little, "messages between ranks are little-endian");

constexpr size_t digest_bytes = 64;  // hex digits

}  // namespace

void refuse_message(const std::string& problem) {
  refuse("message between ranks", problem, "start the same program on every rank");
}

bool is_message(std::string_view bytes, std::string_view kind) {
  return bytes.substr(std::min(sizeof(uint64_t), bytes.size())).starts_with(kind);
}

std::string MessageWriter::finish() {
  std::string out = std::exchange(out_, {});
  out += files::sha256(out);
  return out;
}

MessageReader::MessageReader(std::string_view bytes, std::string_view kind) {
  if (bytes.size() < digest_bytes) refuse_message(str("it has ", bytes.size(), " bytes, less than its digest"));
  left_ = bytes.substr(0, bytes.size() - digest_bytes);
  if (files::sha256(left_) != bytes.substr(left_.size())) refuse_message("it is damaged: its digest differs");
  if (const std::string_view found = text(); found != kind)
    refuse_message(str("it is '", found, "', and '", kind, "' is expected"));
}

int64_t MessageReader::between(int64_t first, int64_t last, const char* what) {
  const auto value = number<int64_t>();
  if (value < first || value > last)
    refuse_message(str(what, " is ", value, ", which is not between ", first, " and ", last));
  return value;
}

size_t MessageReader::count(size_t bytes) {
  return size_t(between(0, int64_t(left_.size() / bytes), "a number of entries"));
}

void MessageReader::finish() const {
  if (!left_.empty()) refuse_message(str(left_.size(), " bytes follow its end"));
}

std::string_view MessageReader::take(size_t size) {
  if (size > left_.size()) refuse_message("it ends too early");
  const std::string_view taken = left_.substr(0, size);
  left_.remove_prefix(size);
  return taken;
}

}  // namespace easydel::esurge
