#include "easydel/config/problems.h"

#include <algorithm>

#include "easydel/base/names.h"
#include "easydel/config/section.h"

namespace easydel::config {
namespace {

// "mixture.informs[0].type" -> "mixture.informs[0]" -> "mixture.informs" -> "mixture" -> ""
std::string above_of(const std::string& path) {
  const size_t cut = path.find_last_of(".[");
  return cut == std::string::npos ? "" : path.substr(0, cut);
}

// Whether `key` is `path` or below it.
bool is_at(std::string_view path, std::string_view key) {
  return key.starts_with(path) && (key.size() == path.size() || key[path.size()] == '.' || key[path.size()] == '[');
}

}  // namespace

void Problems::add(std::string path, Place place, std::string what, std::string remedy) {
  // Two checks may find the same problem.
  if (!known_[path].insert(what).second) return;
  problems_.push_back({std::move(path), place, std::move(what), std::move(remedy)});
}

void Problems::add(std::string path, std::string what, std::string remedy) {
  const Place place = place_of(path);
  add(std::move(path), place, std::move(what), std::move(remedy));
}

void Problems::add(const std::string& path, const UserError& error) {
  if (const auto* several = dynamic_cast<const ConfigError*>(&error)) {
    for (const UserError& problem : several->problems) add(path, problem.headline(), problem.remedy);
    return;
  }
  if (error.place.file.empty() && is_at(path, error.where)) return add(error.where, error.problem, error.remedy);
  add(path, error.headline(), error.remedy);
}

void Problems::note(std::string_view path, std::string_view text) {
  const std::string name(path);
  const std::string line = str(Where(file_place(name, place_of(name)), name).text(), ": ", text);
  if (seen_notes_.insert(line).second) notes_.push_back(line);
}

void Problems::no_effect(std::string path, std::string why) {
  no_effect_.emplace_back(std::move(path), std::move(why));
}

bool Problems::any_at(std::string_view path) const {
  // All paths that begin with `path` come one after the other; between the key itself and those below it there may be
  // other keys ("trainer.seed", "trainer.seed-of", "trainer.seed.x").
  const auto begins = [&](const std::string& text) {
    const auto found = known_.lower_bound(text);
    return found != known_.end() && found->first.starts_with(text);
  };
  return path.empty() ? !problems_.empty()
                      : known_.contains(std::string(path)) || begins(str(path, ".")) || begins(str(path, "["));
}

Place Problems::place_of(std::string path) const {
  for (;; path = above_of(path)) {
    const auto found = places_.find(path);
    if (found != places_.end()) return found->second;
    if (path.empty()) return {};
  }
}

FilePlace Problems::file_place(const std::string& path, Place place) const {
  for (std::string at = path; !at.empty(); at = above_of(at))
    if (const auto source = sources_.find(at); source != sources_.end()) return {source->second};
  return {file_, place.line, place.column};
}

std::vector<Problem> Problems::sorted() const {
  std::vector<Problem> out = problems_;
  const auto order = [](const Problem& p) {
    return std::pair(p.place.line > 0 ? p.place.line : std::numeric_limits<int>::max(), p.place.column);
  };
  std::ranges::stable_sort(out, {}, order);
  return out;
}

std::vector<std::string> Problems::notes() const {
  std::vector<std::string> out = notes_;
  std::vector<std::string> whys;
  std::map<std::string, std::vector<std::string>> paths_of;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& [path, why] : no_effect_) {
    if (!seen.emplace(path, why).second) continue;
    std::vector<std::string>& paths = paths_of[why];
    if (paths.empty()) whys.push_back(why);
    paths.push_back(path);
  }
  std::vector<std::string> groups;
  for (const std::string& why : whys)
    groups.push_back(join(paths_of[why], ", ") + (why.empty() ? "" : " (" + why + ")"));
  if (!groups.empty()) out.push_back("has no effect here: " + join(groups, "; "));
  return out;
}

UserError Problems::error_of(const Problem& p) const {
  return {Where(file_place(p.path, p.place), p.path), p.what, p.remedy};
}

std::string Problems::text() const {
  std::string out;
  for (const Problem& problem : sorted()) out += str(error_of(problem).what(), "\n");
  return out + str(size(), size() == 1 ? " problem in " : " problems in ", file_, "; nothing was run.");
}

void Problems::throw_if_any() const {
  if (!empty()) throw ConfigError(*this);
}

namespace {

std::vector<UserError> errors_of(const Problems& problems) {
  std::vector<UserError> out;
  out.reserve(problems.size());
  for (const Problem& problem : problems.sorted()) out.push_back(problems.error_of(problem));
  return out;
}

}  // namespace

ConfigError::ConfigError(const Problems& all)
    : UserError(all.error_of(all.sorted().at(0)), all.text()), problems(errors_of(all)) {}

std::string Keys::path_of(std::string_view key) const { return join_path(path_, key); }
bool Keys::given(std::string_view key) const { return problems_.given(path_of(key)); }
void Keys::refuse(std::string_view key, std::string what, std::string remedy) {
  problems_.add(path_of(key), std::move(what), std::move(remedy));
}
void Keys::note(std::string_view key, std::string_view text) { problems_.note(path_of(key), text); }
void Keys::no_effect(std::string_view key, std::string why) { problems_.no_effect(path_of(key), std::move(why)); }

}  // namespace easydel::config
