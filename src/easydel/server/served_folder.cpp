#include "easydel/server/served_folder.h"

#include <algorithm>

#include "easydel/base/files.h"

namespace easydel::server {
namespace {

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

}  // namespace

std::filesystem::path folder_below(const std::filesystem::path& given, const std::string& path,
                                   const std::string& field, const std::string& what) {
  const std::filesystem::path all = files::canonical(given), folder = files::canonical(all / path);
  const auto links_out = [&](const std::filesystem::path& entry) { return !is_below(files::canonical(entry), folder); };
  if (folder == all || !is_below(folder, all) || !files::is_folder(folder) ||
      std::ranges::any_of(files::list(folder), links_out))
    refuse(field, str("'", path, "' is not a folder of ", what, " below the server's folder of ",
                      what.starts_with("an ") ? what.substr(3) + "s" : what));
  return folder;
}

void refuse_folder(const UserError& error, const std::filesystem::path& folder, const std::string& path,
                   const std::string& field) {
  std::string problem = error.problem;
  for (size_t at; (at = problem.find(folder.string())) != std::string::npos;)
    problem.replace(at, folder.string().size(), path);
  refuse(field, problem, error.where.find('/') == std::string::npos ? error.remedy : "");
}

}  // namespace easydel::server
