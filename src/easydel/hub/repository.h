// One repository of a hub and its part of the cache, laid out as Hugging Face's own tools do:
//   models--org--name/refs/<revision>          the commit of a branch or tag
//                     snapshots/<commit>/<file> a link to
//                     blobs/<etag>              the bytes, named by their hash
//                     .no_exist/<commit>/<file> the hub answered: no such file
//   .locks/models--org--name/<etag>.lock        held while a blob is downloaded
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/hub/settings.h"

namespace easydel::hub {

enum class RepositoryType : uint8_t { model, dataset };

// "owner/name" or "name", in the characters that the hub allows; not a path.
bool is_hub_name(std::string_view name);

// Called during a download with the bytes that have arrived and the file's size.
using Progress = std::function<void(std::string_view file, int64_t done, int64_t total)>;

// Errors begin with `where`. If several processes fetch the same repository, one of them downloads each file.
class Repository {
 public:
  // UserError if `name` is not a repository name or `revision` not a revision.
  Repository(std::string where, std::string name, RepositoryType type = RepositoryType::model,
             std::string revision = "main", Settings settings = hub::settings());

  // The cached folder of the revision; nullopt: not cached. Makes no requests.
  std::optional<std::filesystem::path> cached_snapshot() const;
  std::optional<std::filesystem::path> cached_file(std::string_view file) const;

  // The local path of the file, downloaded if the hub has a newer one; nullopt: the repository has no such file. Uses
  // the cached file if the hub cannot be reached. UserError: no such repository or revision, no access, offline and not
  // cached, a failed transfer, a wrong hash.
  std::optional<std::filesystem::path> fetch(std::string_view file, const Progress& progress = {}, bool force = false);

  // Fetches every file that `filter` accepts; returns the folder of the snapshot.
  std::filesystem::path fetch_all(const std::function<bool(std::string_view file)>& filter,
                                  const Progress& progress = {});

  const std::string& name() const { return name_; }
  std::filesystem::path folder() const;          // models--org--name in the cache
  std::string url(std::string_view file) const;  // of the file in this revision

 private:
  struct Remote {  // the hub's answer about one file
    std::string commit, etag, location;
    int64_t size = -1;
    bool missing = false;
  };
  Remote ask(std::string_view file) const;
  void fetch_blob(const Remote& remote, std::string_view file, const std::filesystem::path& blob,
                  const Progress& progress, bool force) const;
  void remember(const std::string& commit) const;
  std::string cached_commit() const;

  std::string where_, name_, revision_;
  RepositoryType type_;
  Settings settings_;
};

// Throws the UserError that corresponds to a response of the hub; returns if it is a success (2xx).
void check_answer(const std::string& where, const std::string& name, int status, const std::string& code,
                  const std::string& message, bool with_token);

}  // namespace easydel::hub
