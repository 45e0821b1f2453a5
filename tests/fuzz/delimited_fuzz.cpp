// The reader of csv and tsv files out of any bytes: an error, or rows that read the same when they are written again
// with every value in quotes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/data/delimited.h"

namespace {

using namespace easydel;

// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("table", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) != ssize_t(bytes.size())) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

// Nothing: an error. Rows with too many fields are passed over.
std::optional<std::vector<Value>> rows_of(std::string_view bytes, char separator) {
  const MemoryFile file(bytes);
  std::vector<Value> rows;
  data::ReadOptions options;
  options.on_bad_row = [](const UserError&) {};
  try {
    data::read_delimited(file.path(), separator, options, [&](data::Row row) {
      rows.push_back(std::move(row.fields));
      return true;
    });
  } catch (const UserError&) {
    return std::nullopt;
  }
  return rows;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

std::string written(const std::vector<Value>& rows, char separator) {
  std::string out;
  const auto line = [&](const auto& text_of) {
    for (size_t i = 0; i < rows.front().entries.size(); ++i) out += (i ? std::string(1, separator) : "") + text_of(i);
    out += '\n';
  };
  line([&](size_t i) { return in_quotes(rows.front().entries[i].first); });
  for (const Value& row : rows)
    line([&](size_t i) {
      const Value& field = row.entries[i].second;
      return field.is_null() ? "" : in_quotes(field.scalar);
    });
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char separator : {',', '\t'}) {
    const std::optional<std::vector<Value>> rows = rows_of(bytes, separator);
    // A row of one field that is null is an empty line, which is no row.
    if (!rows || rows->empty() || rows->front().entries.size() < 2) continue;
    const std::string text = written(*rows, separator);
    if (text.find("\r\n") != std::string::npos) continue;  // is read as a line end alone
    const std::optional<std::vector<Value>> again = rows_of(text, separator);
    if (!again || *again != *rows) std::abort();
  }
  return 0;
}
