// Local files to a repository of the hub, as one commit; only what the hub does not have already is sent.
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
  bool is_private = false;                                   // of a repository that is made now
  bool pull_request = false;                                 // as a pull request instead of a commit to the revision
  std::function<bool(const std::string& name)> wanted = {};  // of the folder's files; null: all
  Settings settings = hub::settings();
};

struct Pushed {
  std::string commit, url;        // empty where nothing changed
  std::vector<std::string> sent;  // files of the commit
  int64_t unchanged = 0;
};

// UserError where nothing could be sent: offline, no token, no name of a hub.
void check_push(const std::string& where, const PushOptions& options);

// Every regular file below `folder` (hidden ones and *.incomplete left out), made a repository of where there is none.
// UserError: offline, no token, no access, broken transfer, the folder is none.
Pushed push_folder(const std::string& where, const std::filesystem::path& folder, const PushOptions& options);

}  // namespace easydel::hub
