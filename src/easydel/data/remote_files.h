// Files of data_files that are elsewhere: https://, hf://datasets/owner/name/file, s3:// and gs://. They are fetched
// once and kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/columnar/columnar.h"
#include "easydel/data/mixture_config.h"

namespace easydel::data {

struct RemoteOptions {
  std::filesystem::path cache;  // copies are in its folder remote/; those of hf:// in Hugging Face's own cache
  bool keeps = true;            // cache_remote_files
  int64_t piece_bytes = int64_t{2} << 20;  // that are asked for together, without a copy
  int64_t expiry_seconds = 86400;  // a copy is used so long before the server is asked whether the file has changed
  int64_t retries = 3;             // after the first try fails
  double retry_seconds = 0.1;      // before the first retry; each further one waits twice as long
  std::string token;               // sent as a bearer token to the address's own host; empty: none
  columnar::CloudAccount account = {};  // for s3:// and gs://
};
RemoteOptions remote_options(const MixtureConfig& mixture);

bool is_remote(std::string_view name);  // it has a scheme

// Copies of the file, or of all files that a pattern or a folder of hf://, s3:// or gs:// means, by name; without
// `keeps` the files themselves, to be read by ranges (remote_ranges.h). Safe with
// other processes that do the same. UserError "where: ...": it is not there, not allowed, cannot be reached, or has a
// scheme that is not read.
std::vector<std::filesystem::path> local_copies(const std::string& name, const RemoteOptions& options,
                                                const std::string& where);

}  // namespace easydel::data
