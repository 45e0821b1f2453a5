#include "easydel/data/file_digests.h"

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::data {

FileDigests::FileDigests(std::filesystem::path memory) : memory_(std::move(memory)) {
  if (!files::is_file(memory_)) return;
  Value document;
  try {
    document = parse_json(files::read(memory_));
  } catch (const UserError&) {
    return;
  }
  for (const Value& one : document.items) {
    const Value *device = one.find("device"), *inode = one.find("inode"), *bytes = one.find("bytes"),
                *changed = one.find("changed"), *sha256 = one.find("sha256");
    if (!device || !inode || !bytes || !changed || !sha256) continue;
    known_[{uint64_t(device->as_int().value_or(0)), uint64_t(inode->as_int().value_or(0)),
            uint64_t(bytes->as_int().value_or(0)), changed->as_int().value_or(0)}] = sha256->scalar;
  }
}

const std::string& FileDigests::of(const std::filesystem::path& file) {
  const files::Stamp stamp = files::stamp_of(file);
  if (const auto found = known_.find(stamp); found != known_.end()) return found->second;
  changed_ = true;
  return known_[stamp] = files::sha256_of_file(file);
}

void FileDigests::remember(const std::filesystem::path& file, std::string sha256) {
  changed_ = true;
  known_[files::stamp_of(file)] = std::move(sha256);
}

void FileDigests::save() const {
  if (!changed_) return;
  Value out = Value::list();
  for (const auto& [stamp, sha256] : known_) {
    Value& one = out.items.emplace_back();
    one.set("device", Value::integer(int64_t(stamp.device)));
    one.set("inode", Value::integer(int64_t(stamp.inode)));
    one.set("bytes", Value::integer(int64_t(stamp.bytes)));
    one.set("changed", Value::integer(stamp.changed));
    one.set("sha256", Value::text(sha256));
  }
  files::make_directories(memory_.parent_path());
  files::write(memory_, to_json(out) + "\n");
}

}  // namespace easydel::data
