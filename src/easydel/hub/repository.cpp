#include "easydel/hub/repository.h"

#include <algorithm>
#include <cctype>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/hub/blob.h"
#include "easydel/hub/http.h"

namespace easydel::hub {
namespace fs = std::filesystem;
namespace {

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// True for a relative path that stays below its folder: file names come from the hub and are not trusted.
bool is_inside(std::string_view file) {
  const fs::path path(file);
  if (path.empty() || path.is_absolute() || file.find('\\') != std::string_view::npos ||
      file.find('\0') != std::string_view::npos)
    return false;
  return std::ranges::none_of(path, [](const fs::path& part) { return part == ".." || part == "." || part.empty(); });
}

std::string unquoted(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

std::string plural(RepositoryType type) { return type == RepositoryType::model ? "models" : "datasets"; }

void link(const fs::path& blob, const fs::path& pointer) {
  files::make_directories(pointer.parent_path());
  const fs::path target = files::canonical(blob).lexically_relative(files::canonical(pointer.parent_path()));
  if (files::link_target(pointer) != target) files::link(target, pointer);
}

}  // namespace

bool is_hub_name(std::string_view name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '/';
  };
  if (name.empty() || name.size() > 96 + 40 || std::ranges::count(name, '/') > 1 || !std::ranges::all_of(name, allowed))
    return false;
  if (name.find("--") != std::string_view::npos || name.find("..") != std::string_view::npos) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part.front() == '-' || part.front() == '.' || part.back() == '-' || part.back() == '.')
      return false;
    begin = end + 1;
  }
  return true;
}

Repository::Repository(std::string where, std::string name, RepositoryType type, std::string revision,
                       Settings settings)
    : where_(std::move(where)),
      name_(std::move(name)),
      revision_(std::move(revision)),
      type_(type),
      settings_(std::move(settings)) {
  if (!is_hub_name(name_)) refuse(where_, "'" + name_ + "' is not a name on the hub", "a name is 'owner/name'");
  if (!is_inside(revision_))
    refuse(where_, "'" + revision_ + "' is not a revision", "give a branch, a tag or a commit");
}

fs::path Repository::folder() const {
  std::string name = plural(type_) + "--" + name_;
  if (const size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  return settings_.cache / name;
}

std::string Repository::cached_commit() const {
  if (is_commit(revision_)) return revision_;
  const fs::path ref = folder() / "refs" / revision_;
  if (!files::is_file(ref)) return files::is_folder(folder() / "snapshots" / revision_) ? revision_ : "";
  std::string commit = files::read(ref);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back()))) commit.pop_back();
  return is_inside(commit) ? commit : "";
}

std::optional<fs::path> Repository::cached_snapshot() const {
  const std::string commit = cached_commit();
  const fs::path snapshot = folder() / "snapshots" / commit;
  if (commit.empty() || !files::is_folder(snapshot)) return std::nullopt;
  return snapshot;
}

std::optional<fs::path> Repository::cached_file(std::string_view file) const {
  const auto snapshot = cached_snapshot();
  if (!snapshot || !is_inside(file) || !files::exists(*snapshot / file)) return std::nullopt;
  return *snapshot / file;
}

void Repository::remember(const std::string& commit) const {
  const fs::path ref = folder() / "refs" / revision_;
  if (revision_ == commit || (files::exists(ref) && files::read(ref) == commit)) return;
  files::make_directories(ref.parent_path());
  files::write(ref, commit);
}

std::string Repository::url(std::string_view file) const {
  return settings_.endpoint + (type_ == RepositoryType::dataset ? "/datasets/" : "/") + name_ + "/resolve/" +
         url_path(revision_) + "/" + url_path(file);
}

Repository::Remote Repository::ask(std::string_view file) const {
  const Response answer = perform({.method = "HEAD",
                                   .url = url(file),
                                   .headers = {"Accept-Encoding: identity"},
                                   .token = settings_.token,
                                   .to_other_hosts = false,
                                   .connect_seconds = settings_.etag_seconds,
                                   .stall_seconds = settings_.etag_seconds});
  Remote out{.commit = answer.header("x-repo-commit"), .etag = {}, .location = answer.url};
  const std::string code = answer.header("x-error-code");
  if (answer.status == 404 && code == "EntryNotFound") {
    out.missing = true;
    return out;
  }
  if (answer.status / 100 != 3)
    check_answer(where_, name_ + (revision_ == "main" ? "" : "@" + revision_), answer.status, code,
                 answer.header("x-error-message"), !settings_.token.empty());
  if (const std::string location = answer.header("location"); !location.empty()) out.location = location;
  const std::string linked = answer.header("x-linked-etag"), size = answer.header("x-linked-size");
  out.etag = unquoted(linked.empty() ? answer.header("etag") : linked);
  const std::string length = size.empty() ? answer.header("content-length") : size;
  if (!length.empty() && std::ranges::all_of(length, [](unsigned char c) { return std::isdigit(c); }))
    out.size = std::stoll(length);
  if (out.commit.empty() || out.etag.empty() || !is_inside(out.etag) || !is_inside(out.commit))
    refuse(where_, settings_.endpoint + " does not answer as a hub: no commit or no etag of " + std::string(file),
           "check HF_ENDPOINT");
  return out;
}

void Repository::fetch_blob(const Remote& remote, std::string_view file, const fs::path& blob, const Progress& progress,
                            bool force) const {
  const Lock lock(settings_.cache / ".locks" / folder().filename() / (remote.etag + ".lock"));
  if (force) files::remove_all(blob);
  if (files::exists(blob)) return;
  const std::string target = remote.location.find("://") == std::string::npos ? url(file) : remote.location;
  // The url may be on another host: the token goes only to the hub.
  const bool home = target.starts_with(settings_.endpoint + "/");
  const auto seen = [&](int64_t done) {
    if (progress) progress(file, done, remote.size);
  };
  download({.where = where_,
            .url = target,
            .token = home ? settings_.token : "",
            .etag = remote.etag,
            .size = remote.size,
            .stall_seconds = settings_.download_seconds},
           blob, seen);
}

std::optional<fs::path> Repository::fetch(std::string_view file, const Progress& progress, bool force) {
  if (!is_inside(file)) refuse(where_, "'" + std::string(file) + "' is not a file of a repository");
  if (!force && is_commit(revision_)) {
    if (const auto here = cached_file(file)) return here;
    if (files::exists(folder() / ".no_exist" / revision_ / file)) return std::nullopt;
  }
  if (settings_.offline) {
    if (const auto here = cached_file(file)) return here;
    if (files::exists(folder() / ".no_exist" / cached_commit() / file)) return std::nullopt;
    refuse(
        where_,
        str("'", name_, "': ", file, " is not in the cache ", settings_.cache.string(), ", and HF_HUB_OFFLINE is set"),
        "unset HF_HUB_OFFLINE, or give a folder");
  }
  Remote remote;
  try {
    remote = ask(file);
  } catch (const NetworkError& broken) {
    if (const auto here = cached_file(file)) {
      log::warning("the hub cannot be reached (", broken.what(), "); ", name_, " is taken from the cache");
      return here;
    }
    refuse(where_,
           str("'", name_, "' is not in the cache ", settings_.cache.string(),
               ", and the hub cannot be reached: ", broken.what()),
           "give a folder, or try again");
  }
  if (!remote.commit.empty() && is_inside(remote.commit)) remember(remote.commit);
  if (remote.missing) {
    if (!remote.commit.empty() && is_inside(remote.commit)) {
      const fs::path mark = folder() / ".no_exist" / remote.commit / file;
      files::make_directories(mark.parent_path());
      files::write(mark, "");
    }
    return std::nullopt;
  }
  const fs::path blob = folder() / "blobs" / remote.etag, pointer = folder() / "snapshots" / remote.commit / file;
  if (!force && files::exists(pointer)) return pointer;
  files::make_directories(blob.parent_path());
  fetch_blob(remote, file, blob, progress, force);
  link(blob, pointer);
  return pointer;
}

fs::path Repository::fetch_all(const std::function<bool(std::string_view)>& filter, const Progress& progress) {
  const auto from_cache = [&](const std::string& why) {
    if (const auto snapshot = cached_snapshot()) return *snapshot;
    refuse(where_, str("'", name_, "' is not in the cache ", settings_.cache.string(), ", and ", why),
           "give a folder, or try again");
  };
  if (settings_.offline) return from_cache("HF_HUB_OFFLINE is set");
  Response answer;
  try {
    answer =
        perform({.url = settings_.endpoint + "/api/" + plural(type_) + "/" + name_ + "/revision/" + url_path(revision_),
                 .token = settings_.token,
                 .connect_seconds = settings_.etag_seconds,
                 .stall_seconds = settings_.etag_seconds});
  } catch (const NetworkError& broken) {
    return from_cache(str("the hub cannot be reached: ", broken.what()));
  }
  check_answer(where_, name_ + (revision_ == "main" ? "" : "@" + revision_), answer.status,
               answer.header("x-error-code"), answer.header("x-error-message"), !settings_.token.empty());
  const Value info = parse_json(answer.body, settings_.endpoint);
  const Value *commit = info.find("sha"), *siblings = info.find("siblings");
  if (!commit || !is_commit(commit->scalar) || !siblings || !siblings->is_list())
    refuse(where_, settings_.endpoint + " does not answer as a hub", "check HF_ENDPOINT");
  remember(commit->scalar);
  Repository pinned(where_, name_, type_, commit->scalar,
                    settings_);  // pinned to one commit, even if somebody pushes during the download
  for (const Value& sibling : siblings->items)
    if (const Value* file = sibling.find("rfilename"); file && is_inside(file->scalar) && filter(file->scalar))
      pinned.fetch(file->scalar, progress);
  return folder() / "snapshots" / commit->scalar;
}

void check_answer(const std::string& where, const std::string& name, int status, const std::string& code,
                  const std::string& message, bool with_token) {
  if (status / 100 == 2) return;
  const std::string said = message.empty() ? "" : " (" + message + ")";
  if (code == "GatedRepo")
    refuse(where, "'" + name + "' is gated" + said,
           with_token ? "ask for access on its page" : "ask for access on its page, then set HF_TOKEN");
  if (code == "RevisionNotFound")
    refuse(where, "'" + name + "': the hub has no such revision", "give a branch, a tag or a commit of it");
  if (code == "RepoNotFound" || status == 401 || status == 404)
    refuse(where, "'" + name + "': the hub has no such repository, or does not show it" + said,
           with_token ? "check the name; HF_TOKEN may have no access" : "check the name; a private one needs HF_TOKEN");
  if (status == 403) refuse(where, "'" + name + "': the hub forbids it" + said, "check what HF_TOKEN may do");
  refuse(where, str("'", name, "': the hub answers ", status, said), "try again later");
}

}  // namespace easydel::hub
