// Uploads local files to a repository of the hub as one commit; files that the hub already has are not sent.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "easydel/hub/repository.h"

namespace easydel::hub {

struct PushOptions {
  std::string repository;  // "owner/name"
  RepositoryType type = RepositoryType::model;
  std::string revision = "main";
  std::string message = "Upload with easydel", description = {};
  bool is_private = false;    // if this run creates the repository, make it private
  bool pull_request = false;  // open a pull request instead of committing to the revision
  std::function<bool(const std::string& name)> filter = {};  // selects files of the folder; null: all
  Settings settings = hub::settings();
};

struct Pushed {
  std::string commit, url;        // empty if nothing changed
  std::vector<std::string> sent;  // files of the commit
  int64_t unchanged = 0;
};

// UserError if no upload is possible: offline, no token, or not the name of a repository.
void check_push(const std::string& where, const PushOptions& options);

// Uploads every regular file below `folder` except hidden files and *.incomplete; creates the repository if it does not
// exist. UserError: offline, no token, no access, a failed transfer, or `folder` is not a folder.
Pushed push_folder(const std::string& where, const std::filesystem::path& folder, const PushOptions& options);

}  // namespace easydel::hub
