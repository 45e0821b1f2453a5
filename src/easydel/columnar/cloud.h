// Files of clouds' storages, through Arrow's file systems.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/columnar/columnar.h"

namespace easydel::columnar {

// As Library has them.
std::vector<CloudFile> list_cloud_files(const std::string& address, const CloudAccount& account);
void read_cloud_file(const std::string& address, const CloudAccount& account, int64_t from,
                     const std::function<void(std::string_view)>& sink);
std::unique_ptr<CloudReader> open_cloud_file(const std::string& address, const CloudAccount& account);

}  // namespace easydel::columnar
