// The folder that `mixture.save` writes: numbered files of rows with their description, which take their place
// together; perhaps sent to a hub. What the rows are is not decided here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/mixture_config.h"
#include "easydel/hub/push.h"

namespace easydel::data {

// Where the files of a save begin, from the rows' sizes in their order.
class FileCuts {
 public:
  explicit FileCuts(const SaveConfig& save) : shards_(save.num_shards), most_(save.shard_bytes().value_or(0)) {}
  void add_row(int64_t bytes);  // before compression
  // First row of each file, and the number of rows.
  std::vector<int64_t> cuts() const;

 private:
  std::optional<int64_t> shards_;
  int64_t most_;
  std::vector<int64_t> begins_{0};
  int64_t rows_ = 0, bytes_ = 0;  // bytes of the last file
};

struct SavedContent {
  std::vector<int64_t> cuts;  // of FileCuts
  Value features;             // the columns as `datasets` describes them
  Value description;          // what decides the bytes, besides the format and the cuts
  std::string fingerprint;    // of the data
  std::string about;          // for the card: "the rows that sft learns from"
  // Writes the rows of cuts[i] to cuts[i + 1] into files[i], for all i.
  std::function<void(const std::vector<std::filesystem::path>& files)> write;
};

bool is_columnar(const SaveConfig& save);

// UserError: Arrow is needed and not there, the folder already exists and is not an earlier save, or nothing may be
// uploaded to the hub.
void check_saved_folder(const std::string& where, const SaveConfig& save);

// Writes the content, as train-00000-of-00002.jsonl ... As arrow it is a folder that load_from_disk() of `datasets`
// opens. A folder that already holds this content is left as it is. Otherwise all files are written next to it and take
// its place together; files with other names stay. Returns the files. UserError: the folder holds other data and
// overwrite is false, another process saves there, or the disk or the upload fails.
std::vector<std::filesystem::path> write_saved_folder(const std::string& where, const SaveConfig& save,
                                                      const SavedContent& content);

hub::PushOptions push_options(const SaveConfig& save);

}  // namespace easydel::data
