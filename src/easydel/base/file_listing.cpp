#include "easydel/base/file_listing.h"

#include "easydel/base/error.h"

namespace easydel::files {

Value listing_of(const std::map<std::string, Recorder::Entry>& written) {
  Value out = Value::map();
  for (const auto& [name, entry] : written) {
    Value one = Value::map();
    one.set("bytes", Value::integer(int64_t(entry.bytes)));
    one.set("sha256", Value::text(entry.sha256));
    out.set(name, std::move(one));
  }
  return out;
}

std::string listing_defect(const fs::path& folder, const Value& listing) {
  for (const auto& [name, entry] : listing.entries) {
    const fs::path path = folder / name;
    if (!files::is_file(path)) return str(name, " is missing");
    const Value* const bytes = entry.find("bytes");
    if (bytes && bytes->as_int() != int64_t(files::size(path)))
      return str(name, " has ", files::size(path), " bytes, not ", bytes->scalar);
    const Value* const hash = entry.find("sha256");
    if (!hash || hash->scalar != files::sha256_of_file(path))
      return str(name, " is not what was written (its hash is different)");
  }
  return "";
}

}  // namespace easydel::files
